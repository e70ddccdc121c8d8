// Runs this program several times side by side, for benchmarks that compare whole jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::bench {

struct BenchJob {
  std::vector<std::string> arguments;  // after the program's name
  std::string output;                  // file for its output and errors
};

// Runs all jobs in their order, `at_once` at a time. `ended(index, exit code)` is called for each;
// the code is 128 plus the signal if a signal ended the job. Returns 0 when all have run. After
// SIGINT, SIGTERM or SIGHUP, which is passed on to the jobs that run, no other job is started, and
// the result is 128 plus the signal once they have ended.
[[nodiscard]] Result<int> run_jobs(const std::vector<BenchJob>& jobs, std::size_t at_once,
                                   const std::function<void(std::size_t, int)>& ended);

}  // namespace antdt::bench
