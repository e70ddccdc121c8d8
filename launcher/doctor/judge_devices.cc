#include <fmt/format.h>

#include "launcher/doctor/judge.h"

namespace antdt::launcher {
namespace {

// The driver resets no GPU that a program has open, and an agent has them all open.
constexpr const char* kReset =
    "nvidia-smi -q -i N says more; before nvidia-smi --gpu-reset -i N, drain the host, wait for "
    "its processes to end, and stop what keeps the GPU open: systemctl stop antdtd "
    "nvidia-persistenced nvidia-dcgm. After the reset start them again, and antdt undrain HOST";
constexpr const char* kWhy = "jobs lease them: a device that is not healthy is given to nobody";

std::string holders_of(const report::HostDevice& device) {
  std::string text;
  for (const report::DeviceHolder& holder : device.holders) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        holder.job.empty() ? fmt::format("a job of {}", holder.user)
                                           : fmt::format("{} of {}", holder.worker, holder.job));
  }
  if (device.elsewhere) return "is held by another agent of the machine";
  return text.empty() ? "free" : "is held by " + text + (device.shared ? " (shared)" : "");
}

}  // namespace

void judge_devices(const HostFacts& host, Findings& findings) {
  if (!host.devices) return;
  const report::HostDevices& told = *host.devices;
  if (!told.trouble.empty()) {
    findings.push_back({Level::kWarning, label(host), "GPUs", "the GPUs that jobs may lease",
                        told.trouble, "while nobody knows how they are, no job gets one",
                        "nvidia-smi says whether the driver works, and dmesg | grep -e NVRM -e Xid "
                        "what it lacks or which device blocks it"});
  }
  for (const report::HostDevice& device : told.list) {
    const std::string name = fmt::format("{} ({})", device.name, device.uuid);
    Finding finding{Level::kOk, label(host), "GPUs", name, "", kWhy, ""};
    if (device.problem.empty()) {
      finding.found =
          fmt::format("{} {}{}", device.uuid.empty() ? device.name : device.uuid,
                      holders_of(device), device.model.empty() ? "" : ", " + device.model);
    } else {
      finding.level = Level::kWarning;
      finding.found = device.problem;
      finding.advice = kReset;
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace antdt::launcher
