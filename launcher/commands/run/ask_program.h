// What only the workers' program knows about a job: whether it has the model, the reader and the
// other names in [trainer], and whether it reads each option in [user].
#pragma once

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::cli {

// The program must exist (roles.worker.command begins with its path). A program that is linked with
// the C++ kit is asked before anything starts, by `PROGRAM … --check JOB`, where JOB is the
// effective configuration: it makes its model and the rest as a worker would. Any other program is
// not run; the names must then be built-in ones. kUsage says what is wrong, in the program's own
// words if it was asked.
[[nodiscard]] Status ask_program(const launcher::JobConfig& config);

}  // namespace antdt::cli
