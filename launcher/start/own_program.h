// What only the user's own program can know: the names that it registered with the C++ kit, and its
// options in [user].
#pragma once

#include <string>
#include <vector>

#include "launcher/config/job_config.h"

namespace antdt::launcher {

// A model that is no module of LibTorch: tally, tally3 or emulated.
[[nodiscard]] bool is_instrument(const std::string& model);
// Whether a program of this name, with its folder or without, is built in: antdt-trainer, or
// antdt-instrument, which has the instruments alone.
[[nodiscard]] bool is_built_in(const std::string& program);
// Writes antdt-instrument where the workers are antdt-trainer and the model is an instrument: it
// does without LibTorch, which takes a second of a processor to be loaded. A path stays as it is.
void choose_built_in(JobConfig& config);

// Whether the workers' program speaks the worker protocol and is not built in.
[[nodiscard]] bool may_have_own_names(const JobConfig& config);

struct NameProblem {
  std::string key;
  std::string text;  // how to mend it
};
// The names and options that the built-in program does not know: a model that antdt-instrument has
// not, models and optimizers that are not built in, a reader, a metric, a schedule, and, if
// antdt-trainer is the program, options in [user] that it does not read.
[[nodiscard]] std::vector<NameProblem> unknown_names(const JobConfig& config);

}  // namespace antdt::launcher
