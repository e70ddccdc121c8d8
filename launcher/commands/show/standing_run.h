// A run whose directory is on a filesystem that does not answer (patience.h). Its job daemon is
// found by the runtime directory, and asked all the same.
#pragma once

#include <string>

#include "core/result.h"
#include "launcher/commands/operate/running_job.h"

namespace antdt::cli {

// A link to the job daemon of the run with this directory or this job's id, as far as that can be
// found without the run's own files. kUnreachable says that the run's filesystem does not answer,
// and that no daemon was found.
[[nodiscard]] Result<RunningJob> reach_without_files(const std::string& name);

}  // namespace antdt::cli
