// Watching a job until it ends.
//
// On a terminal a block of lines is redrawn twice a second; elsewhere a line is
// printed every 5 s and for each event that matters. The job does not need its
// watcher: SIGHUP only ends the watching. SIGINT and SIGTERM stop the job (a
// checkpoint, then exit code 75), a second one without waiting; or, where a
// watcher came later (`antdt attach`), only end the watching too.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/start/run_directory.h"

namespace antdt::launcher {

struct WatchOptions {
  std::string run_dir;
  RunControl control;
  std::chrono::milliseconds stop_grace{30000};
  std::FILE* out = stdout;  // where progress goes
  bool terminal = false;    // whether that is one
  bool signals_stop = true;
  std::string who;  // sits there: named to the job when a signal stops it
};

struct WatchEnd {
  int signal = 0;  // that ended the watching; 0: the job has ended
};

// Keeps SIGINT, SIGTERM and SIGHUP from this thread's programs until watch()
// takes them: called before anything is started that they would orphan.
void hold_signals();

// Returns when the job daemon is gone and has left a summary, or on a signal. An
// error (kUnreachable): the job's processes are gone and there is none.
[[nodiscard]] Result<WatchEnd> watch(transport::Context& context, const WatchOptions& options);

// Waits for the private agent to end after its job, helps it along where it
// does not, and removes the socket directory if nothing is left in it.
void finish_agent(const RunControl& control);

}  // namespace antdt::launcher
