// antdt jobs: lists the runs of this user that can be found.
#pragma once

#include <vector>

#include "core/result.h"
#include "launcher/commands/show/runs.h"

namespace antdt::cli {

// Prints one line for each run: state, workers, progress, directory.
[[nodiscard]] Status print_jobs(const std::vector<KnownRun>& runs, bool json);

}  // namespace antdt::cli
