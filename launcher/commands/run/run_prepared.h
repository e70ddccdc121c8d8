// Starts a job that was checked, and follows it to its end.
#pragma once

#include "core/transport/socket.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

struct RunHow {
  launcher::RunOptions run;
  bool json = false;
  bool detach = false;
  std::optional<launcher::LentHosts> lent = {};
  bool shows_output = false;  // of the processes, while the job is watched
  std::string plan = {};      // JSON: why trainer.sync = "auto" became what it is; RUN/plan.json
};

// Indexes the data, starts the job and, unless it is detached, watches it. Returns the exit code.
[[nodiscard]] Result<int> run_prepared(transport::Context& context, const Prepared& prepared,
                                       const RunHow& how);

}  // namespace antdt::cli
