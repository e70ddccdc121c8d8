// antdt jobs: the runs of this user that can be found.
#pragma once

#include "core/result.h"

namespace antdt::cli {

[[nodiscard]] bool any_runs();  // now
// A line a run, newest first: state, workers, progress, directory.
[[nodiscard]] Status print_jobs(bool json);

}  // namespace antdt::cli
