// antdt run --resume --grow: records were added behind those that the run began with.
#pragma once

#include <string>

#include "core/result.h"
#include "jobd/programs/job_spec.h"
#include "launcher/config/job_config.h"

namespace antdt::cli {

// Checks that `now`, which is in `now_text` as for RUN/data.json, has everything that `before` has,
// under the same record numbers: files behind the old ones, and more lines at the end of the last
// old file. Returns the text of the new RUN/data.json. The error (kUsage) names the file that
// differs otherwise, or what forbids this job to grow.
[[nodiscard]] Result<std::string> grown_data(const launcher::JobConfig& config,
                                             const jobd::DataFound& before,
                                             const jobd::DataFound& now,
                                             const std::string& now_text);

}  // namespace antdt::cli
