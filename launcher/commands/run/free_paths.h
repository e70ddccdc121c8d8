// Whether a new run's directory is free on the hosts of its cluster.
#pragma once

#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {

// kUsage, with the way out, if a host has files of a run where this run's directory will be: its
// checkpoints would be mixed up with this job's. Asks all hosts side by side; one that does not
// answer is left out, since the job daemon looks again before anything is written there. Only a
// directory that the user has chosen can be taken: others are named after the job.
[[nodiscard]] Status check_paths_are_free(transport::Context& context,
                                          const launcher::JobConfig& config,
                                          const launcher::RunOptions& options);

}  // namespace antdt::cli
