// antdt run --resume: a run that has ended or was broken off goes on.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt::cli {

struct ResumeOptions {
  std::string run;
  bool json = false;
  bool detach = false;
};

// Checks that the run can go on (it does not run, is not done, its journal is
// whole, its data is what it began with), then starts a private agent and the
// job daemon on its directory and shows it as `antdt run` does. The exit code.
[[nodiscard]] Result<int> resume(const ResumeOptions& options);

}  // namespace antdt::cli
