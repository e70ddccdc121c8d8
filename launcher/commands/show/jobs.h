// antdt jobs: lists the runs of this user that can be found.
#pragma once

#include "core/result.h"

namespace antdt::cli {

[[nodiscard]] bool any_runs();  // whether any run exists now
// Prints one line for each run, newest first: state, workers, progress, directory.
[[nodiscard]] Status print_jobs(bool json);

}  // namespace antdt::cli
