// Rules of trainer.sync and of the keys that belong to some of its values, which the schema cannot
// express. Pure.
#pragma once

#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

void check_sync(const JobConfig& config, Problems& problems);

}  // namespace antdt::launcher
