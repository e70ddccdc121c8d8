// Shows a running job until it ends, for run, run --resume and attach.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/start/run_directory.h"
#include "launcher/start/user_unit.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

struct WatchRun {
  std::string run_dir;
  launcher::RunControl control;
  std::chrono::milliseconds stop_grace{};
  bool json = false;         // standard output is for the summary, as JSON
  bool signals_stop = true;  // false: a signal only ends the watching, not the job
  std::optional<launcher::LentHosts> lent = {};
  // How many processes' output is shown, too; 0: it is not.
  std::size_t shown_processes = 0;
};

// The stream for progress and remarks.
[[nodiscard]] inline std::FILE* talk(bool json) { return json ? stderr : stdout; }

// Where the processes of a job run: a job that is watched runs in this session.
[[nodiscard]] launcher::DetachedPlace place_of(bool detached, const std::string& job);

struct Started {
  std::string job;
  std::string run_dir;
  bool json = false;
  bool detached = false;  // also print how to look at the run
  launcher::DetachedPlace place;
};
void print_started(const Started& started);

// Returns the exit code of the job, after printing its summary and its first cause; or 128 plus the
// number of the signal that ended the watching. If the job goes on elsewhere, it is watched there.
[[nodiscard]] Result<int> watch_run(transport::Context& context, const WatchRun& run);

// The same for a job that is elsewhere already. kUnreachable if for half a minute no agent of its
// hosts leads to its daemon.
[[nodiscard]] Result<int> watch_elsewhere(const WatchRun& run);

// Prints how a run ended, and returns its exit code.
[[nodiscard]] Result<int> print_summary(const std::string& run_dir, bool json);

}  // namespace antdt::cli
