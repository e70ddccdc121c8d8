// What only the workers' program knows of a job: whether it has the model, the reader and the
// other names in [trainer], and reads each option in [user].
#pragma once

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::cli {

// The program is there (roles.worker.command begins with its path). One that is linked with the C++
// kit is asked, by `PROGRAM … --check JOB`, where JOB is the effective configuration, before
// anything starts: it makes its model and the rest as a worker would. Of any other program the
// names must be those that are built in, and it is not run. kUsage: what is wrong, in the program's
// words where it was asked.
[[nodiscard]] Status ask_program(const launcher::JobConfig& config);

}  // namespace antdt::cli
