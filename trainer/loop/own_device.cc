#include "trainer/loop/own_device.h"

#include <fmt/format.h>

namespace antdt::trainer {
namespace {

// The value of a key at its first occurrence ("key<blanks>: value"), with single blanks.
std::string value_of(std::string_view cpuinfo, std::string_view key) {
  while (!cpuinfo.empty()) {
    const std::string_view line = cpuinfo.substr(0, cpuinfo.find('\n'));
    cpuinfo.remove_prefix(std::min(line.size() + 1, cpuinfo.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon);
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    if (name != key) continue;
    std::string value;
    for (const char c : line.substr(colon + 1)) {
      const bool blank = c == ' ' || c == '\t';
      if (!blank) value += c;
      if (blank && !value.empty() && value.back() != ' ') value += ' ';
    }
    if (value.ends_with(' ')) value.pop_back();
    return value;
  }
  return {};
}

}  // namespace

std::string cpu_class(std::string_view cpuinfo, std::uint32_t threads) {
  std::string model = value_of(cpuinfo, "model name");
  if (model.empty()) model = value_of(cpuinfo, "cpu");  // POWER
  if (const std::string part = value_of(cpuinfo, "CPU part"); model.empty() && !part.empty()) {
    model = fmt::format("{}/{}", value_of(cpuinfo, "CPU implementer"), part);  // ARM
  }
  return model.empty() ? "" : fmt::format("cpu:{} x{}", model, threads);
}

wire::Device own_device(const TrainerConfig& config, WorkerId worker, std::string_view cpuinfo) {
  if (config.model != "emulated") return {cpu_class(cpuinfo, config.threads), 0};
  const drill::Device* device = config.emulation.device_of(worker);
  return device == nullptr ? wire::Device{} : wire::Device{device->name, device->memory};
}

}  // namespace antdt::trainer
