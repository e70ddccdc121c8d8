// A connection to a running job, for an operator's request.
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
  std::unique_ptr<transport::Context> context;  // must outlive the link
  launcher::JobLink link;
};

// The error (kUsage, kUnreachable) says where the job is instead and what to do.
[[nodiscard]] Result<RunningJob> reach(const std::string& job);

[[nodiscard]] Result<report::Status> status_of(RunningJob& job);

// Asks for the job's status until `happened` is true. If that takes long, standard error says what
// the job waits for. kUnreachable if the job's processes disappear, kRefused if the job ends first.
[[nodiscard]] Status wait_until(RunningJob& job,
                                const std::function<bool(const report::Status&)>& happened);

// Whether no worker is awaited and none is about to leave, so that all that are there train.
[[nodiscard]] bool is_settled(const report::Status& status);

}  // namespace antdt::cli
