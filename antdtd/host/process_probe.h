// Reads the kernel's counters for processes of this host (host_probe.h), about once a second for
// each; this reads a few small files for each thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "antdtd/host/host_probe.h"
#include "antdtd/shim/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd {

// The present counts of a process, and those of its `cgroup` ("": none) if that exists, otherwise
// of the host. `root` replaces "/" of /proc.
[[nodiscard]] HostCounts read_counts(std::uint32_t pid, const std::string& cgroup,
                                     const std::string& root = "");

// Whether `pid` or a process below it is in `pids`.
[[nodiscard]] bool computes_on_any(std::uint32_t pid, const std::set<std::uint32_t>& pids);

class ProcessProbes {
 public:
  explicit ProcessProbes(std::string root = "") : root_(std::move(root)) {}

  // What happened since the previous look; empty if there was none, or if it was a moment ago.
  // `throttled_us` is how long the agent itself has stopped the process so far; `held_down` are the
  // processes on accelerators whose clocks are held down (accelerators.h).
  [[nodiscard]] wire::HostProbe look(const ProcessKey& key, std::uint32_t pid,
                                     const std::string& cgroup, std::uint64_t throttled_us,
                                     const std::set<std::uint32_t>& held_down, MonoTime now);
  void forget(const ProcessKey& key) { seen_.erase(key); }

 private:
  struct Seen {
    HostCounts counts;
    MonoTime when{};
  };
  std::string root_;
  std::map<ProcessKey, Seen> seen_;
};

}  // namespace antdt::antdtd
