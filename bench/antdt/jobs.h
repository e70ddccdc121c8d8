// Runs of this program side by side, for benchmarks that compare whole jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::bench {

struct BenchJob {
  std::vector<std::string> arguments;  // after the program's name
  std::string output;                  // file for what it prints, errors included
};

// Runs all of them, `at_once` at a time, in their order. `ended(index, exit code)` is told
// of each; the code is 128 plus the signal for one that a signal ended. 0 when all have
// run. SIGINT, SIGTERM and SIGHUP are passed on to those that run, no other is started,
// and the result is 128 plus the signal once they have ended.
[[nodiscard]] Result<int> run_jobs(const std::vector<BenchJob>& jobs, std::size_t at_once,
                                   const std::function<void(std::size_t, int)>& ended);

}  // namespace antdt::bench
