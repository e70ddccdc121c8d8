// The runs of this user, and which of them a command refers to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/commands/show/patience.h"

namespace antdt::cli {

// kBrokenOff: there are neither processes nor a summary, as after a power failure.
enum class RunState { kRunning, kEnded, kBrokenOff };

struct KnownRun {
  std::string run_dir;  // absolute
  std::string job;      // the id ends with a ULID, so of the same name later ids are greater
  RunState state = RunState::kEnded;
  // Why its files cannot be seen, so that `state` is only whether its private agent runs here; "":
  // they can.
  std::string trouble = {};
};

// Says that a path's filesystem has not answered within kDiskPatience, and what to look at.
[[nodiscard]] std::string does_not_answer(const std::string& path);

// The id of the run's job; for a run that was never started, the name of its directory.
[[nodiscard]] std::string job_id(const std::string& run_dir);

// A job daemon writes its summary last, so while it exists the run is running. While its agent
// exists, the job daemon comes back.
[[nodiscard]] RunState state_of(const std::string& run_dir);
// The same, but an error (kIo) if the directory answers with one, as a stale mount does: that is
// not that nothing of the run is there.
[[nodiscard]] Result<RunState> seen_state(const std::string& run_dir);
// The same; kUnreachable if that filesystem does not answer for a few seconds.
[[nodiscard]] Result<RunState> state_in_time(const std::string& run_dir);

// The runs below runs/ in the working directory, and runs in any directory whose processes run,
// newest first. A run elsewhere that has ended is not found, because there is no list of runs. Runs
// whose filesystem does not answer delay this by a few seconds; so does a directory runs/ that does
// not, which stands for all in it. `pending`: of earlier calls.
[[nodiscard]] std::vector<KnownRun> known_runs(
    const std::shared_ptr<PendingLooks>& pending = std::make_shared<PendingLooks>());
// The first one that runs; null: none does.
[[nodiscard]] const KnownRun* newest_running(const std::vector<KnownRun>& runs);

// A private agent of this user, found by the files of the runtime directory alone.
struct KnownAgent {
  std::string job;
  std::string run_dir;
  std::string socket_dir;
};
[[nodiscard]] std::vector<KnownAgent> known_agents();

// The run directory for a run directory, a job's id or the beginning of an id; for "" the newest
// running job. The error (kUsage) lists the runs that exist; kIo if this user may not look there or
// that filesystem answers with an error, and kUnreachable if it does not answer.
//
// Of a run whose processes are here, the filesystem need not answer.
[[nodiscard]] Result<std::string> locate_run(const std::string& name);
// The same for who needs the run's files: an error, too, if their filesystem does not answer
// (kUnreachable), or with an error (kIo).
[[nodiscard]] Result<std::string> find_job(const std::string& name);

// How the help of every command describes its JOB.
inline constexpr const char* kJobHelp = "a run directory, a job's id, or the beginning of one";

// "root@host": names the user in records of requests.
[[nodiscard]] std::string operator_name();

}  // namespace antdt::cli
