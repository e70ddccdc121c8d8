// A run whose directory is on a filesystem that does not answer (patience.h), or with an error. Its
// job daemon is found by the runtime directory, and asked all the same.
#pragma once

#include <string>

#include "core/result.h"
#include "launcher/commands/operate/running_job.h"

namespace antdt::cli {

// A link to the job daemon of the run with this directory or this job's id, as far as that can be
// found without the run's own files. The error, of the kind of `trouble`, says that no daemon was
// found, and the trouble with the files.
[[nodiscard]] Result<RunningJob> reach_without_files(const std::string& name, const Error& trouble);

}  // namespace antdt::cli
