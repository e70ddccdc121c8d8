// A plan for people and for programs. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/plan/predict.h"

namespace antdt::launcher::plan {

// A table of the ways, the recommendation with its reasons, and what to write into job.toml.
[[nodiscard]] std::vector<std::string> plan_lines(const Measured& measured, const Plan& plan);
// The same, with what was measured. docs/synchronisation/plan.md says what each field means.
[[nodiscard]] nlohmann::ordered_json plan_json(const Measured& measured, const Plan& plan);

// `--set` of antdt run for a prediction: trainer.sync and what it needs.
[[nodiscard]] std::vector<std::string> settings_of(const Prediction& prediction);
// The same as lines of job.toml.
[[nodiscard]] std::vector<std::string> toml_lines(const Prediction& prediction);

}  // namespace antdt::launcher::plan
