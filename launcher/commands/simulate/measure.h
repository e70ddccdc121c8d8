// Measures a job that no run has measured: trains it for a while, as a run of its own.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "launcher/commands/simulate/recorded_run.h"

namespace antdt::cli {

struct Measuring {
  std::string job;                     // job.toml
  std::vector<std::string> overrides;  // as for `antdt run --set`
  Duration at_most{};
};
// Runs the job in a directory of its own, with equal batches and without hooks and metrics, until
// the speed of each worker is known (sim/fleet/steadiness.h), the job ends, or `at_most` has
// passed; then stops it, and removes the directory. Tells people on standard error what it does.
// The error says why the job did not train, with the end of what it printed.
[[nodiscard]] Result<RecordedRun> measure(const Measuring& what);

}  // namespace antdt::cli
