// Runs whose host lost their job: its journal is in etcd, and a job daemon that stood by on another
// host of the job goes on with it (docs/operations/etcd.md). The run's files here are those of the
// time before; the job is asked through an agent of its hosts.
#pragma once

#include <string>

#include "core/result.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"

namespace antdt::cli {

// Of a run of which nothing runs here (kBrokenOff): kRunning if a job daemon elsewhere has its job.
// kEnded if it has ended there; then summary.json is here from now on. Otherwise kBrokenOff, also
// if etcd does not answer.
[[nodiscard]] RunState state_elsewhere(const std::string& run_dir);

// Of any run: whether it runs here or elsewhere, or has ended.
[[nodiscard]] RunState present_state(const std::string& run_dir);

// kUnreachable if a job daemon elsewhere has the run's job; the message names its host.
[[nodiscard]] Status check_not_elsewhere(const std::string& run_dir);

// Through the first agent of the job's hosts that leads to its daemon. kUnreachable if there is
// none; the message says what each of them answers.
[[nodiscard]] Result<RunningJob> reach_elsewhere(const std::string& run_dir);

// The host on which a run was started that has not ended, if it is another machine that shares the
// run directory, and no etcd knows whether the job goes on there; otherwise "".
[[nodiscard]] std::string unseen_host(const std::string& run_dir);

// kUnreachable, with where to ask, if there is such a host.
[[nodiscard]] Status check_seen(const std::string& run_dir);

}  // namespace antdt::cli
