// Reads what the kernel counts of the processes of this host (host_probe.h), about once
// a second for each: a look costs a few small files for each thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "antdtd/host/host_probe.h"
#include "antdtd/shim/process_key.h"
#include "core/clock.h"

namespace antdt::antdtd {

// The counts of a process now; of its `cgroup` ("": none) where one is there, else of
// the host. `root` replaces "/" of /proc.
[[nodiscard]] HostCounts read_counts(std::uint32_t pid, const std::string& cgroup,
                                     const std::string& root = "");

// Whether `pid` or a process below it is one of `pids`.
[[nodiscard]] bool computes_on_any(std::uint32_t pid, const std::set<std::uint32_t>& pids);

class ProcessProbes {
 public:
  explicit ProcessProbes(std::string root = "") : root_(std::move(root)) {}

  // What happened since the look before; empty where there was none, or if that was a
  // moment ago. `throttled_us` is the time that the agent itself held it back so far;
  // `held_down` are the processes on accelerators whose clocks are (accelerators.h).
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
