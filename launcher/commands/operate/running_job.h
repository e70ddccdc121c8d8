// A job that runs, reached for an operator's wish.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/start/job_link.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/status_view.h"

namespace antdt::cli {

struct RunningJob {
  std::string run_dir;
  launcher::RunControl control;
  std::unique_ptr<transport::Context> context;  // outlives the link
  launcher::JobLink link;
};

// An error (kUsage, kUnreachable) says where the job is instead and what to do.
[[nodiscard]] Result<RunningJob> reach(const std::string& job);

[[nodiscard]] Result<report::Status> status_of(RunningJob& job);

// Asks for the job's status until `happened` says so; while it takes long, what
// the job waits for is told on standard error. kUnreachable when the job's
// processes go away, kRefused when it ends first.
[[nodiscard]] Status wait_until(RunningJob& job,
                                const std::function<bool(const report::Status&)>& happened);

// Whether nobody is awaited and nobody is on the way out: who is there trains.
[[nodiscard]] bool is_settled(const report::Status& status);

}  // namespace antdt::cli
