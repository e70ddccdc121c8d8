// Identifies a process among those of all jobs on this host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ids.h"

namespace antdt::antdtd {

struct ProcessKey {
  std::string job;
  Member member;
  auto operator<=>(const ProcessKey&) const = default;
};

// The id of the job daemon among its job's processes; role 'd' is reserved for it.
inline constexpr WorkerId kJobDaemon{'d', 0};

// "w0.1": the process in file names.
[[nodiscard]] inline std::string file_name(Member member) {
  return to_string(member.worker) + "." + std::to_string(member.attempt.value);
}
// "w0 (attempt 1) of job ctr-01H…": the process in messages to people.
[[nodiscard]] inline std::string describe(const ProcessKey& key) {
  return to_string(key.member.worker) + " (attempt " + std::to_string(key.member.attempt.value) +
         ") of job " + key.job;
}
// A job id becomes the name of a directory: at most 128 letters, digits, '-', '_' and '.', the last
// not first.
[[nodiscard]] bool valid_job_id(std::string_view job);

// How a process ended. Exactly one of: code >= 0; signal > 0; error not empty (the program could
// not be executed at all).
struct ExitStatus {
  std::int32_t code = -1;
  std::int32_t signal = 0;
  std::string error;
  std::string last_lines;  // the end of its standard error, at most kLastLinesBytes
  std::string oom{};       // evidence that memory ran out; empty: none
  // Its agent or its shim ended it, because the one that it depends on was silent for its orphan
  // timeout: the job's daemon, or the agent.
  bool orphaned = false;
  // What was wrong with a device that it had under lease when it failed; empty: nothing. The exit
  // file does not have it.
  std::string device{};
  bool operator==(const ExitStatus&) const = default;
};
inline constexpr std::size_t kLastLinesBytes = 4096;

}  // namespace antdt::antdtd
