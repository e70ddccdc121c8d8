#include "antdtd/devices/nvml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <limits>

#include "antdtd/shim/binding.h"
#include "core/log/log.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

constexpr std::size_t kMostCpus = 4096;
constexpr std::size_t kBits = std::numeric_limits<unsigned long>::digits;

// Limits that an operator set for all (applications' clocks) and idling do not count.
struct Reason {
  unsigned long long bits;
  const char* text;
};
constexpr std::array<Reason, 3> kHeldDown = {Reason{0x20 | 0x40, "heat"},
                                             Reason{0x04 | 0x80, "a power limit"},
                                             Reason{0x08, "the hardware"}};

std::string held_down_by(unsigned long long reasons) {
  std::string text;
  for (const Reason& reason : kHeldDown) {
    if ((reasons & reason.bits) != 0) text += (text.empty() ? "" : ", ") + std::string(reason.text);
  }
  return text;
}

template <std::size_t kSize>
std::string text_of(const std::array<char, kSize>& buffer) {
  return {buffer.data(), std::find(buffer.begin(), buffer.end(), '\0')};
}

// What a failed call says about a device; "" if it says nothing.
std::string problem_of(int error) {
  if (error == nvml::kGpuIsLost) return "it has fallen off the bus";
  if (error == nvml::kResetRequired) {
    return "it must be reset before it can be used again: stop antdtd, which keeps it open, first";
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
  ANTDT_TRY(nvml::Calls calls, nvml::find_calls(library));
  return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

Nvml::~Nvml() {
  if (began_) calls_.shutdown();
}

Status Nvml::begin() {
  if (const int error = calls_.init(); error != 0) {
    return fail(ErrorKind::kUnreachable, "{} (error {})", words_of(error), error);
  }
  began_ = true;
  unsigned count = 0;
  if (const int error = calls_.count(&count); error != 0) {
    return fail(ErrorKind::kUnreachable, "it does not count the GPUs: {} (error {})",
                words_of(error), error);
  }
  if (count == 0) {
    return fail(ErrorKind::kUnreachable,
                "it finds no GPU; where there is one, the kernel's log (NVRM) says what is wrong");
  }
  log_info("{} accelerators are watched", count);
  return {};
}

std::string Nvml::words_of(int error) const {
  if (error == nvml::kDriverNotLoaded) {
    return "the driver is not loaded; 'modprobe nvidia' loads it, or the kernel's log says why not";
  }
  if (error == nvml::kVersionMismatch) {
    return "the driver in the kernel is of another version than the library, as after an upgrade; "
           "restarting the machine mends that";
  }
  if (error == nvml::kNoPermission) {
    return "it may not use the driver; the agent's user needs access to /dev/nvidiactl and "
           "/dev/nvidia0 and so on";
  }
  const char* const text = calls_.error_string == nullptr ? nullptr : calls_.error_string(error);
  return text == nullptr ? "nvidia-smi may say why" : text;
}

Nvml::Seen Nvml::look() {
  Seen seen;
  unsigned count = 0;
  // A device that fell off the bus may not be counted any more, or keep the others from being
  // counted.
  if (calls_.count(&count) != 0) count = 0;
  for (const auto& [index, facts] : facts_) count = std::max(count, index + 1);
  for (unsigned i = 0; i < count; ++i) look_at(i, seen);
  return seen;
}

// A container or an allocation of Slurm may keep devices from us; these are somebody else's.
void Nvml::look_at(unsigned index, Seen& seen) {
  nvml::Handle handle = nullptr;
  const int error = calls_.handle(index, &handle);
  if (error == nvml::kNoPermission) return;
  const auto known = facts_.find(index);
  if (error != 0) {
    wire::HostDevice device = known == facts_.end() ? wire::HostDevice{} : known->second;
    device.index = index;
    device.problem = problem_of(error);
    if (device.problem.empty()) {
      device.problem = fmt::format("the driver cannot reach it (error {} of NVML)", error);
    }
    seen.devices.push_back(std::move(device));
    return;
  }
  wire::HostDevice device = known == facts_.end() ? read_facts(handle, index) : known->second;
  device.problem = read_problem(handle);
  if (known == facts_.end() && !device.uuid.empty()) {
    wire::HostDevice facts = device;
    facts.problem.clear();
    facts_.emplace(index, std::move(facts));
  }
  read_state(handle, device, seen);
  unsigned mig = 0;
  unsigned later = 0;
  if (calls_.mig_mode != nullptr && calls_.mig_mode(handle, &mig, &later) == 0 && mig == 1) {
    return add_instances(handle, device, seen);
  }
  seen.devices.push_back(std::move(device));
}

wire::HostDevice Nvml::read_facts(nvml::Handle handle, unsigned index) const {
  std::array<char, 96> text{};
  wire::HostDevice device;
  device.index = index;
  if (calls_.uuid != nullptr && calls_.uuid(handle, text.data(), text.size()) == 0) {
    device.uuid = text_of(text);
  }
  if (calls_.name != nullptr && calls_.name(handle, text.data(), text.size()) == 0) {
    device.name = text_of(text);
  }
  nvml::Memory memory{};
  if (calls_.memory != nullptr && calls_.memory(handle, &memory) == 0) {
    device.memory_bytes = memory.total;
  }
  nvml::PciInfo pci{};
  if (calls_.pci != nullptr && calls_.pci(handle, &pci) == 0) {
    device.pci = std::string(pci.bus_id, std::find(pci.bus_id, std::end(pci.bus_id), '\0'));
  }
  device.cpus = cpus_near(handle);
  device.numa_node = node_near(handle, device.pci);
  if (calls_.most_clock != nullptr) {
    calls_.most_clock(handle, nvml::kProcessorClock, &device.most_clock_mhz);
  }
  return device;
}

std::string Nvml::cpus_near(nvml::Handle handle) const {
  std::vector<unsigned long> set(kMostCpus / kBits);
  if (calls_.cpus == nullptr ||
      calls_.cpus(handle, static_cast<unsigned>(set.size()), set.data()) != 0) {
    return "";
  }
  return cpu_list(set);
}

// The kernel's number of the PCI device is the second source, for older libraries.
std::int32_t Nvml::node_near(nvml::Handle handle, const std::string& pci) const {
  std::vector<unsigned long> set(kMostCpus / kBits);
  if (calls_.memory_nodes != nullptr &&
      calls_.memory_nodes(handle, static_cast<unsigned>(set.size()), set.data(),
                          nvml::kNearestNode) == 0) {
    const std::vector<std::uint32_t> nodes = parse_cpu_list(cpu_list(set));
    if (nodes.size() == 1) return static_cast<std::int32_t>(nodes.front());
  }
  constexpr std::size_t kSysfsLength = 12;  // "0000:3b:00.0", of NVML's "00000000:3B:00.0"
  if (pci.size() < kSysfsLength) return -1;
  std::string id = pci.substr(pci.size() - kSysfsLength);
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  const Result<std::string> text = read_file("/sys/bus/pci/devices/" + id + "/numa_node");
  std::int32_t node = -1;
  if (text) std::from_chars(text->data(), text->data() + text->size(), node);
  return node;
}

std::string Nvml::read_problem(nvml::Handle handle) const {
  std::string problems;
  const auto add = [&](std::string problem) {
    problems += (problems.empty() ? "" : "; ") + std::move(problem);
  };
  unsigned long long errors = 0;
  if (calls_.ecc_errors != nullptr) {
    const int told =
        calls_.ecc_errors(handle, nvml::kUncorrected, nvml::kSinceDriverBegan, &errors);
    if (const std::string lost = problem_of(told); !lost.empty()) return lost;
    if (told == 0 && errors > 0) {
      add(fmt::format("{} uncorrected ECC error{} since the driver began or the device was reset",
                      errors, errors == 1 ? "" : "s"));
    }
  }
  int pending = 0;
  if (calls_.pages_pending != nullptr && calls_.pages_pending(handle, &pending) == 0 &&
      pending != 0) {
    add("memory pages wait to be retired: stop antdtd and reset the device");
  }
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned rows_pending = 0;
  unsigned failed = 0;
  if (calls_.remapped_rows != nullptr &&
      calls_.remapped_rows(handle, &corrected, &uncorrected, &rows_pending, &failed) == 0) {
    if (failed != 0) add("remapping a row of its memory failed: replace the device");
    if (rows_pending != 0) {
      add("rows of its memory wait to be remapped: stop antdtd and reset the device");
    }
  }
  return problems;
}

void Nvml::read_state(nvml::Handle handle, wire::HostDevice& device, Seen& seen) const {
  unsigned long long reasons = 0;
  const int told = calls_.throttle_reasons(handle, &reasons);
  if (device.problem.empty()) device.problem = problem_of(told);
  if (told == 0) device.clocks_held_down = held_down_by(reasons);
  if (!device.clocks_held_down.empty()) add_processes(handle, seen.held_down);
  nvml::Utilization busy{};
  if (calls_.utilization != nullptr && calls_.utilization(handle, &busy) == 0) {
    device.utilisation_percent = busy.gpu;
  }
  if (calls_.clock != nullptr) {
    calls_.clock(handle, nvml::kProcessorClock, &device.clock_mhz);
  }
}

// The GPU itself is no device while it is divided. What is wrong with it is wrong with each part.
void Nvml::add_instances(nvml::Handle handle, const wire::HostDevice& gpu, Seen& seen) const {
  unsigned most = 0;
  if (calls_.most_mig == nullptr || calls_.mig_handle == nullptr) return;
  calls_.most_mig(handle, &most);
  bool any = false;
  for (unsigned i = 0; i < most; ++i) {
    nvml::Handle instance = nullptr;
    std::array<char, 96> text{};
    if (calls_.mig_handle(handle, i, &instance) != 0 || calls_.uuid == nullptr ||
        calls_.uuid(instance, text.data(), text.size()) != 0) {
      continue;
    }
    any = true;
    wire::HostDevice device = gpu;
    device.mig = true;
    device.mig_index = i;
    device.uuid = text_of(text);
    if (calls_.name != nullptr && calls_.name(instance, text.data(), text.size()) == 0) {
      device.name = text_of(text);
    }
    nvml::Memory memory{};
    if (calls_.memory != nullptr && calls_.memory(instance, &memory) == 0) {
      device.memory_bytes = memory.total;
    }
    seen.devices.push_back(std::move(device));
  }
  if (any) return;
  wire::HostDevice whole = gpu;
  if (whole.problem.empty()) {
    whole.problem =
        "its MIG mode is on and it has no instances: make some with nvidia-smi mig, or stop antdtd "
        "and switch the mode off";
  }
  seen.devices.push_back(std::move(whole));
}

// More processes may have started between two calls; the next look finds them.
void Nvml::add_processes(nvml::Handle handle, std::set<std::uint32_t>& pids) const {
  unsigned count = 0;
  const int rc = calls_.processes(handle, &count, nullptr);
  if ((rc != 0 && rc != nvml::kInsufficientSize) || count == 0) return;
  std::vector<nvml::ProcessInfo> infos(count);
  if (calls_.processes(handle, &count, infos.data()) != 0) return;
  infos.resize(std::min<std::size_t>(count, infos.size()));
  for (const nvml::ProcessInfo& info : infos) pids.insert(info.pid);
}

}  // namespace antdt::antdtd
