// Converts the effective configuration between struct and JSON. For this folder's .cc files only.
#pragma once

#include <nlohmann/json.hpp>

#include "launcher/config/job_config.h"

namespace antdt::launcher {

[[nodiscard]] nlohmann::ordered_json config_to_json(const JobConfig& config);
// Fills in what `json` has. A missing or null value leaves the struct's own value; if the
// configuration must be `complete`, it is an error (kCorrupt).
[[nodiscard]] Result<JobConfig> config_from_json(const nlohmann::ordered_json& json, bool complete);

}  // namespace antdt::launcher
