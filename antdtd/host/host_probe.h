// What the kernel counts of a process and of its host, and the difference of two such counts: why a
// worker is slow, as seen from outside. Pure; process_probe.h reads the counts.
//
// A value that the kernel does not provide stays 0 and explains nothing: pressure stall information
// may be switched off, and only a process with a cgroup of its own can have a quota.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "core/clock.h"
#include "core/wire/agent_messages.h"

namespace antdt::antdtd {

// Times of one thread, in nanoseconds.
struct ThreadTimes {
  std::uint64_t ran = 0;     // on a CPU
  std::uint64_t queued = 0;  // waiting for a CPU
  bool operator==(const ThreadTimes&) const = default;
};
// All CPUs of the host together, in ticks.
struct StolenTicks {
  std::uint64_t stolen = 0;
  std::uint64_t all = 0;
  bool operator==(const StolenTicks&) const = default;
};

// All counters at one moment.
struct HostCounts {
  std::map<int, ThreadTimes> threads;  // by thread id
  std::uint64_t throttled_us = 0;
  StolenTicks ticks;
  std::uint64_t cpu_stalled_us = 0;
  std::uint64_t io_stalled_us = 0;
  std::uint64_t memory_stalled_us = 0;
};

// /proc/PID/task/TID/schedstat: "ran queued timeslices".
[[nodiscard]] std::optional<ThreadTimes> parse_schedstat(std::string_view text);
// cpu.stat of a cgroup: the line "throttled_usec N".
[[nodiscard]] std::optional<std::uint64_t> parse_throttled(std::string_view text);
// A file of pressure stall information: "some ... total=N", in microseconds.
[[nodiscard]] std::optional<std::uint64_t> parse_pressure(std::string_view text);
// /proc/stat: the first line, for all CPUs. The time of guests is already contained in that of
// users.
[[nodiscard]] std::optional<StolenTicks> parse_stolen(std::string_view text);

// What happened between two moments that are `looked` apart. A new thread counts from its
// beginning, a thread that ended is lost, and a counter that went back counts nothing.
[[nodiscard]] wire::HostProbe difference(const HostCounts& before, const HostCounts& after,
                                         Duration looked);

}  // namespace antdt::antdtd
