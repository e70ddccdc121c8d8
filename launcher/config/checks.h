// What the schema cannot say of one key alone.
#pragma once

#include "launcher/config/job_config.h"
#include "launcher/config/problems.h"

namespace antdt::launcher {

// Fills in the values that depend on others: restart, format, shard_records.
void derive(JobConfig& config);

// Adds what does not fit together to `problems`. A check is left out when
// something is wrong already with a key that it needs.
void check(const JobConfig& config, Problems& problems);

}  // namespace antdt::launcher
