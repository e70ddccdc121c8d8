// Rules of [[inject]], [[domain]], [[device]] and [emulated] that the schema cannot express. Pure,
// except that trace files are read.
#pragma once

#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

void check_drills(const JobConfig& config, Problems& problems);

}  // namespace antdt::launcher
