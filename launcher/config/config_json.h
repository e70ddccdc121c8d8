// The effective configuration between struct and JSON, for this folder's .cc files.
#pragma once

#include <nlohmann/json.hpp>

#include "launcher/config/job_config.h"

namespace antdt::launcher {

[[nodiscard]] nlohmann::ordered_json config_to_json(const JobConfig& config);
// Fills what `json` has. Missing and null values leave the struct's own, and
// are an error (kCorrupt) only when it must be `complete`.
[[nodiscard]] Result<JobConfig> config_from_json(const nlohmann::ordered_json& json, bool complete);

}  // namespace antdt::launcher
