#include "antdtd/host/process_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "antdtd/shim/process_tree.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kLeastApart = std::chrono::milliseconds(900);

std::map<int, ThreadTimes> read_threads(const std::string& process) {
  std::map<int, ThreadTimes> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator it(process + "/task", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    int id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec != std::errc()) continue;
    const auto text = read_file(it->path().string() + "/schedstat");
    const auto times = text ? parse_schedstat(*text) : std::nullopt;
    if (times) threads[id] = *times;
  }
  return threads;
}

std::uint64_t read_pressure(const std::string& cgroup, const std::string& root,
                            const std::string& what) {
  if (!cgroup.empty()) {
    const auto own = read_file(fmt::format("{}/{}.pressure", cgroup, what));
    const auto stalled = own ? parse_pressure(*own) : std::nullopt;
    if (stalled) return *stalled;
  }
  const auto text = read_file(fmt::format("{}/proc/pressure/{}", root, what));
  return text ? parse_pressure(*text).value_or(0) : 0;
}

}  // namespace

HostCounts read_counts(std::uint32_t pid, const std::string& cgroup, const std::string& root) {
  HostCounts counts;
  counts.threads = read_threads(fmt::format("{}/proc/{}", root, pid));
  if (!cgroup.empty()) {
    const auto text = read_file(cgroup + "/cpu.stat");
    if (text) counts.throttled_us = parse_throttled(*text).value_or(0);
  }
  const auto stat = read_file(root + "/proc/stat");
  if (stat) counts.ticks = parse_stolen(*stat).value_or(StolenTicks{});
  counts.cpu_stalled_us = read_pressure(cgroup, root, "cpu");
  counts.io_stalled_us = read_pressure(cgroup, root, "io");
  counts.memory_stalled_us = read_pressure(cgroup, root, "memory");
  return counts;
}

bool computes_on_any(std::uint32_t pid, const std::set<std::uint32_t>& pids) {
  if (pids.empty()) return false;
  if (pids.contains(pid)) return true;
  const auto below = descendants(static_cast<pid_t>(pid));
  return std::ranges::any_of(
      below, [&](pid_t child) { return pids.contains(static_cast<std::uint32_t>(child)); });
}

wire::HostProbe ProcessProbes::look(const ProcessKey& key, std::uint32_t pid,
                                    const std::string& cgroup, std::uint64_t throttled_us,
                                    const std::set<std::uint32_t>& held_down, MonoTime now) {
  if (pid == 0) return {};
  const auto known = seen_.find(key);
  if (known != seen_.end() && now - known->second.when < kLeastApart) return {};
  HostCounts counts = read_counts(pid, cgroup, root_);
  counts.throttled_us += throttled_us;
  if (known == seen_.end()) {
    seen_.emplace(key, Seen{std::move(counts), now});
    return {};
  }
  wire::HostProbe probe = difference(known->second.counts, counts, now - known->second.when);
  if (computes_on_any(pid, held_down)) probe.clocks_us = probe.looked_us;
  known->second = {std::move(counts), now};
  return probe;
}

}  // namespace antdt::antdtd
