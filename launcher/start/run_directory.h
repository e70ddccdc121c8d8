// The directory of a run: runs/<job id>/, mode 0700.
//
//   job.toml        as given              effective.toml, job.json  with every default
//   data.json       what was found in the data (written by antdt run)
//   control.json    how to reach the job: RunControl
//   state.db        the journal, unless --state-dir
//   logs/ checkpoints/ events.jsonl agent.log summary.json
//   given-up        why no job daemon was started again (core/report/given_up.h)
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "core/os/fs.h"
#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::launcher {

struct RunOptions {
  std::string run_dir;    // empty: runs/<job id> in the working directory
  std::string state_dir;  // empty: state.db is in the run directory
  // Detects network filesystems; tests pass their own function.
  std::function<Result<std::optional<std::string>>(const std::string&)> filesystem =
      network_filesystem;
};

// Paths are absolute.
struct RunDirectory {
  std::string path;
  std::string state_dir;  // the directory of state.db: `path`, or <--state-dir>/<job id>
  FileLock lock;          // held while the run is being set up
};

// Whether a run can be made there: kUsage for a directory that contains a run or anything else, and
// for a network filesystem under state.db.
[[nodiscard]] Status check_run_directory(const RunOptions& options);

// Makes the directory and writes job.toml, effective.toml and job.json into it.
[[nodiscard]] Result<RunDirectory> create_run_directory(const JobConfig& config,
                                                        const std::string& job_toml,
                                                        const RunOptions& options);

// Holds the run directory while a run is set up or resumed in it. kUsage, naming the process, if
// another one does; kIo if the lock cannot be written, as on a disk that is full.
[[nodiscard]] Result<FileLock> hold_run_directory(const std::string& path);

// How to reach a run's processes: RUN/control.json.
struct RunControl {
  std::string job;
  std::string jobd_socket;
  std::string agent_socket;
  std::string state_dir;
  pid_t agent_pid = 0;
  // distinguishes the agent from a later process with the same pid
  std::uint64_t agent_start_time = 0;
  // The machine on which they run, which write_control() knows: its name, and the id that its
  // system got when it began. Empty: an older release wrote the file.
  std::string host = {};
  std::string boot = {};
};
[[nodiscard]] Status write_control(const std::string& run_dir, const RunControl& control);
// The error (kUsage) says that `run_dir` is not a run directory, or that the run was never started.
[[nodiscard]] Result<RunControl> read_control(const std::string& run_dir);

// The name of the other machine on which the run's processes were started, so that nothing here
// tells whether they run; "": they were started here, or it is not known. Containers of one machine
// see one another's locks, and a machine that was started again has none of its processes: so
// another machine is one of another name and of another boot id.
[[nodiscard]] std::string started_elsewhere(const std::string& run_dir);

// Why the private agent gave the run's job daemon up; it begins with "its job daemon". Empty: it
// did not, or could not write it.
[[nodiscard]] std::string given_up(const std::string& run_dir);
// Says of a run that broke off (it has neither processes nor a summary) what is known of why, and
// how to go on. kUnreachable.
[[nodiscard]] Error broken_off(const std::string& run_dir);

}  // namespace antdt::launcher
