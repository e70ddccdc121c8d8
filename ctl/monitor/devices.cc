#include "ctl/monitor/devices.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

// It comes from other programs, and is shown to people and written as JSON.
std::string printable(std::string name) {
  if (name.size() > Devices::kLongestName) name.resize(Devices::kLongestName);
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

// 0: there is none.
std::uint32_t smaller_bound(std::uint32_t a, std::uint32_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

bool DeviceRule::is_for(WorkerId worker, std::string_view on_host) const {
  if (!host.empty() && host != on_host) return false;
  return workers.empty() || std::ranges::find(workers, to_string(worker)) != workers.end();
}

bool Devices::say(Member member, Device device) {
  const auto known = said_.find(member.worker);
  if (known == said_.end() ? device == Device{} : member.attempt < known->second.attempt) {
    return false;
  }
  device.name = printable(std::move(device.name));
  Entry& entry = said_[member.worker];
  // At each new group it says again what it knew at its start, before it ran out of memory.
  if (entry.attempt == member.attempt)
    device.max_micro_batch = smaller_bound(device.max_micro_batch, entry.device.max_micro_batch);
  if (entry.attempt == member.attempt && entry.device == device) return false;
  entry = {member.attempt, std::move(device)};
  return true;
}

bool Devices::ran_out(Member member, std::uint32_t max_micro_batch) {
  const auto known = said_.find(member.worker);
  Device device = known == said_.end() ? Device{} : known->second.device;
  device.max_micro_batch = max_micro_batch;
  return max_micro_batch != 0 && say(member, std::move(device));
}

Device Devices::of(Member member, std::string_view host) const {
  Device device;
  for (const DeviceRule& rule : rules_) {
    if (!rule.is_for(member.worker, host)) continue;
    if (device.name.empty()) device.name = rule.device.name;
    if (device.max_micro_batch == 0) device.max_micro_batch = rule.device.max_micro_batch;
  }
  const auto found = said_.find(member.worker);
  if (found == said_.end() || found->second.attempt != member.attempt) return device;
  const Device& own = found->second.device;
  if (device.name.empty()) device.name = own.name;
  if (device.max_micro_batch == 0) device.max_micro_batch = own.max_micro_batch;
  return device;
}

std::vector<Devices::Said> Devices::said() const {
  std::vector<Said> all;
  for (const auto& [worker, entry] : said_) all.push_back({{worker, entry.attempt}, entry.device});
  return all;
}

void Devices::restore(const std::vector<Said>& said) {
  for (const Said& s : said) say(s.member, s.device);
}

}  // namespace antdt::ctl
