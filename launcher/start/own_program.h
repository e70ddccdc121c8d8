// What only the user's own program can know: the names that it registered with the C++ kit, and its
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
// The names and options that antdt-trainer does not know: models and optimizers that are not built
// in, a reader, a metric, a schedule, and, if antdt-trainer is the program, options in [user] that
// it does not read.
[[nodiscard]] std::vector<NameProblem> unknown_names(const JobConfig& config);

}  // namespace antdt::launcher
