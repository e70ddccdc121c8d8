// What only a program of one's own can know: names that it registered with the C++ kit, and its
// options in [user].
#pragma once

#include <string>
#include <vector>

#include "launcher/config/job_config.h"

namespace antdt::launcher {

// Whether the workers' program speaks the worker protocol and is not antdt-trainer.
[[nodiscard]] bool may_have_own_names(const JobConfig& config);

struct NameProblem {
  std::string key;
  std::string text;  // how to mend it
};
// What antdt-trainer does not know of the job: models and optimizers that are not built in, a
// reader, a metric, a schedule, and, where it is the program, options that it does not read.
[[nodiscard]] std::vector<NameProblem> unknown_names(const JobConfig& config);

}  // namespace antdt::launcher
