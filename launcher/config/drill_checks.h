// What [[inject]], [[device]] and [emulated] must hold beside the schema. Pure but for the traces,
// which are read.
#pragma once

#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

void check_drills(const JobConfig& config, Problems& problems);

}  // namespace antdt::launcher
