// Rules of job.toml that concern several keys, which the schema cannot express.
#pragma once

#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

// Computes the values that depend on others: restart, format, shard_records.
void derive(JobConfig& config);

// Adds rules that are violated to `problems`. A check is left out if a key that it needs already
// has a problem.
void check(const JobConfig& config, Problems& problems);

}  // namespace antdt::launcher
