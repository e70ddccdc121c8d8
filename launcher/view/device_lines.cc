#include "launcher/view/device_lines.h"

#include <fmt/format.h>

#include "launcher/view/text_table.h"

namespace antdt::launcher {
namespace {

std::string holders_text(const report::HostDevice& device) {
  std::string text;
  for (const report::DeviceHolder& holder : device.holders) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        holder.job.empty() ? fmt::format("another job (of {})", holder.user)
                                           : fmt::format("{} {}", holder.job, holder.worker));
  }
  if (device.shared) text += " (shared)";
  if (device.elsewhere) text = "leased by another agent of the machine";
  if (device.problem.empty()) return text.empty() ? "free" : text;
  return (text.empty() ? "not leased: " : text + ", not healthy: ") + device.problem;
}

}  // namespace

std::vector<std::string> device_lines(const std::vector<report::Host>& hosts) {
  std::vector<std::string> lines;
  for (const report::Host& host : hosts) {
    if (!host.devices) continue;
    lines.push_back(host.devices->trouble.empty()
                        ? fmt::format("GPUs of {}:", host.name)
                        : fmt::format("GPUs of {}, none of which is leased now: {}", host.name,
                                      host.devices->trouble));
    std::vector<std::vector<std::string>> rows;
    for (const report::HostDevice& device : host.devices->list) {
      rows.push_back({"  " + device.name, device.uuid, device.model, holders_text(device)});
    }
    const std::vector<std::string> table = text_table({"", "", "", ""}, rows);
    if (!table.empty()) lines.insert(lines.end(), table.begin() + 1, table.end());
  }
  return lines;
}

}  // namespace antdt::launcher
