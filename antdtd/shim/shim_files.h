// The files through which a shim and its agent find each other. They outlive the agent.
//
// A process has a directory, <state>/jobs/<job>/<worker>.<attempt>/ :
//   start   what was requested (written by the agent before anything runs)
//   cgroup  the path of its cgroup, if it has one (likewise)
//   pid     "shim <pid> <start time>\nworker <pid> <start time>\n"; empty until
//           the worker runs. The shim holds a flock on it as long as it lives. A process
//           that can lock it knows that the shim is gone, or has not begun and never
//           will (a shim ends without starting anything if it cannot get the lock,
//           or if `exit` is there or the file has been removed)
//   claim   the agent touches it every kClaimPeriod; if it was not touched for
//           the orphan timeout, the shim kills everything and itself
//   orphaned  there (and empty) if the agent ends the process because the job's daemon is silent
//   exit    how the worker ended, synced and renamed into place: a first line
//           "code <n>", "signal <n>" or "error <text>", after a number also " orphaned" or
//           " oom <evidence>", then the last lines of its standard error. Until then
//           it is exit.part, which the agent makes so that it may read it
// For another user's process, `pid`, `claim` and `exit` are in the subdirectory `own`
// (antdtd/users/user_files.h). Times are start times of processes in clock ticks since boot.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"
#include "core/result.h"

namespace antdt::antdtd {

inline constexpr Duration kClaimPeriod = std::chrono::seconds(1);

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
};
struct PidFile {
  ProcessIdentity shim;
  ProcessIdentity worker;
};

[[nodiscard]] inline std::string start_file(const std::string& dir) { return dir + "/start"; }
[[nodiscard]] inline std::string cgroup_file(const std::string& dir) { return dir + "/cgroup"; }
[[nodiscard]] inline std::string pid_file(const std::string& dir) { return dir + "/pid"; }
[[nodiscard]] inline std::string claim_file(const std::string& dir) { return dir + "/claim"; }
[[nodiscard]] inline std::string orphaned_file(const std::string& dir) { return dir + "/orphaned"; }
[[nodiscard]] inline std::string exit_file(const std::string& dir) { return dir + "/exit"; }

[[nodiscard]] inline std::string exit_part_file(const std::string& dir) {
  return dir + "/exit.part";
}
[[nodiscard]] inline std::string own_directory(const std::string& dir) { return dir + "/own"; }

[[nodiscard]] std::string format_pid_file(const PidFile& pids);
// Empty for an empty or half-written file.
[[nodiscard]] std::optional<PidFile> parse_pid_file(std::string_view text);

[[nodiscard]] std::string format_exit(const ExitStatus& status);
[[nodiscard]] Result<ExitStatus> parse_exit(std::string_view text);

// Writes exit.part and renames it. In a directory without exit.part (of an earlier release) it
// makes a new file.
[[nodiscard]] Status save_exit_file(const std::string& dir, const ExitStatus& status);

// A lock on a process's pid file. The process's shim holds it for life; an agent takes it only to
// find out that no shim holds it.
class PidLock {
 public:
  // kRefused: another process has it; kUnreachable: the file does not exist (any more).
  [[nodiscard]] static Result<PidLock> take(const std::string& dir);
  PidLock(PidLock&& other) noexcept;
  PidLock& operator=(PidLock&& other) = delete;
  ~PidLock();
  [[nodiscard]] Status write(const PidFile& pids);

 private:
  explicit PidLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace antdt::antdtd
