// Watches a job until it ends.
//
// On a terminal, a block of lines is redrawn twice a second. Otherwise a line is printed every 5 s
// and for each important event. The job does not depend on its watcher: SIGHUP only ends the
// watching. SIGINT and SIGTERM stop the job (a checkpoint, then exit code 75), and a second one
// does not wait. If the watcher came later (`antdt attach`), these signals, too, only end the
// watching.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/operator_messages.h"
#include "launcher/start/job_link.h"
#include "launcher/start/run_directory.h"

namespace antdt::launcher {

// Hosts that the watching command lends to the job, and ends when it ends itself (launcher/slurm).
// The job cannot go on without the command, so SIGHUP stops it as SIGTERM does.
struct LentHosts {
  std::function<void(const RunControl&)> begun;       // the job has begun
  std::function<std::vector<wire::HostGone>()> gone;  // the hosts that went since the last call
};

struct WatchOptions {
  std::string run_dir;
  RunControl control;
  std::chrono::milliseconds stop_grace{30000};
  std::FILE* out = stdout;  // stream for the progress
  bool terminal = false;    // whether `out` is a terminal
  bool signals_stop = true;
  std::optional<LentHosts> lent;
  std::string who;  // the user at the terminal, named to the job when a signal stops it
  // New lines of the job's processes, which are shown, too; with `last`, unfinished ones as well.
  std::function<std::vector<std::string>(bool last)> output = nullptr;
};

struct WatchEnd {
  // the signal that ended the watching; 0: the job has ended or, through an agent, that does not
  // lead to the job's daemon any more
  int signal = 0;
  bool has_heard = false;  // the job's daemon had answered
};

// Blocks SIGINT, SIGTERM and SIGHUP until watch() handles them. To be called before anything is
// started that they would orphan.
void hold_signals();
// Waits so long for one of these signals, which are held, and returns it; 0: none came.
[[nodiscard]] int held_signal_within(Duration time);

// Returns when the job daemon is gone and has left a summary, or on a signal. The error
// (kUnreachable) says that the job's processes are gone without a summary. Through an agent, only
// whether that leads to the daemon is known.
[[nodiscard]] Result<WatchEnd> watch(JobLink jobd, const WatchOptions& options);

// Waits for the private agent to end after its job, ends it if it does not, and removes the socket
// directory if it is empty.
void finish_agent(const RunControl& control);

}  // namespace antdt::launcher
