#include "antdtd/devices/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

namespace antdt::antdtd {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr std::string_view kByBus = "PCI_BUS_ID";

std::optional<std::uint32_t> index_of(std::string_view name) {
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return index;
}

bool is_named(const wire::HostDevice& device, std::string_view name) {
  if (const auto index = index_of(name)) return device.index == *index;
  const bool whole_name = name.starts_with("GPU-") || name.starts_with("MIG-");
  return whole_name && device.uuid.starts_with(name);
}

}  // namespace

std::vector<wire::HostDevice> visible_devices(std::vector<wire::HostDevice> all,
                                              const char* cuda_visible_devices) {
  if (cuda_visible_devices == nullptr) return all;
  std::vector<wire::HostDevice> visible;
  std::string_view rest = cuda_visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    bool any = false;
    for (const wire::HostDevice& device : all) {
      if (!is_named(device, name)) continue;
      any = true;
      if (std::ranges::find(visible, device) == visible.end()) visible.push_back(device);
    }
    if (!any) break;
  }
  return visible;
}

std::string doubt_about_visible(const std::vector<wire::HostDevice>& all,
                                const char* cuda_visible_devices, const char* cuda_device_order) {
  if (cuda_visible_devices == nullptr) return "";
  const std::string_view names = cuda_visible_devices;
  if (!index_of(names.substr(0, names.find(',')))) return "";  // CUDA mixes no UUIDs with indexes
  if (cuda_device_order != nullptr && cuda_device_order == kByBus) return "";
  std::set<std::string> models;
  for (const wire::HostDevice& device : all) {
    if (!device.mig) models.insert(device.name);
  }
  const std::vector<wire::HostDevice> chosen = visible_devices(all, cuda_visible_devices);
  if (models.size() < 2 || chosen.empty()) return "";
  std::string text;
  for (const wire::HostDevice& device : chosen) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.uuid, device.name);
  }
  return fmt::format(
      "CUDA_VISIBLE_DEVICES={} of the agent's environment is read in the order of PCI bus ids, so "
      "jobs get {}. The GPUs here are of different models, and CUDA counts the fastest first: name "
      "UUIDs there, or set CUDA_DEVICE_ORDER=PCI_BUS_ID if that order is meant",
      names, text);
}

std::vector<wire::EnvVar> environment_with_devices(const wire::StartProcess& start) {
  std::vector<wire::EnvVar> env;
  if (!start.lease) return start.env;
  const wire::DeviceLease& lease = *start.lease;
  if (lease.devices.empty()) env.push_back({kVisible, ""});
  env.insert(env.end(), start.env.begin(), start.env.end());
  if (lease.devices.empty()) return env;
  std::string names;
  for (const wire::LeasedDevice& device : lease.isolated ? own_devices(lease) : lease.devices) {
    if (device.uuid.empty()) return env;  // a host that counts its devices cannot name them
    names += (names.empty() ? "" : ",") + device.uuid;
  }
  env.push_back({kVisible, names});
  env.push_back({"CUDA_DEVICE_ORDER", std::string(kByBus)});
  if (lease.isolated) {
    env.push_back({"LOCAL_RANK", "0"});
    env.push_back({"LOCAL_WORLD_SIZE", "1"});
  }
  return env;
}

}  // namespace antdt::antdtd
