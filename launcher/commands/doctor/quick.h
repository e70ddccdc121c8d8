// The part of `antdt doctor` that `antdt run` does before it starts anything.
#pragma once

#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {

// Prints errors and warnings to standard error, for a job whose agents have answered. It takes less
// than a second, and stops nothing: what makes a job impossible is refused by the checks of antdt
// run themselves.
void warn_of_trouble(transport::Context& context, const launcher::JobConfig& config,
                     const launcher::RunOptions& options);

}  // namespace antdt::cli
