// The runs of this user, and which of them a command means.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

// kBrokenOff: neither processes nor a summary, as after a power failure.
enum class RunState { kRunning, kEnded, kBrokenOff };

struct KnownRun {
  std::string run_dir;  // absolute
  std::string job;      // id; its end is a ULID, so later ids of one name are greater
  RunState state = RunState::kEnded;
};

// That of a run which was never started is its directory's name.
[[nodiscard]] std::string job_id(const std::string& run_dir);

// A job daemon writes its summary last: while it is there, it runs; while its
// agent is, it comes back.
[[nodiscard]] RunState state_of(const std::string& run_dir);

// Those below runs/ in the working directory, and those of any directory whose
// processes run, newest first. A run of another directory that has ended is not
// found: nobody keeps a list of them.
[[nodiscard]] std::vector<KnownRun> known_runs();

// A private agent of this user, by the files of the runtime directory alone.
struct KnownAgent {
  std::string job;
  std::string run_dir;
  std::string socket_dir;
};
[[nodiscard]] std::vector<KnownAgent> known_agents();

// The run directory that a user means: a run directory, a job's id or the
// beginning of one; with "" the newest running job. kUsage names what there is.
[[nodiscard]] Result<std::string> find_job(const std::string& name);

// How the help of every command describes its JOB.
inline constexpr const char* kJobHelp = "a run directory, a job's id, or the beginning of one";

// "root@host": who asks, for the record.
[[nodiscard]] std::string operator_name();

}  // namespace antdt::cli
