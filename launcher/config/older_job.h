// Completes a configuration that lacks keys. For this folder's .cc files only.
#pragma once

#include <nlohmann/json.hpp>

namespace antdt::launcher {

// Gives missing keys their defaults: either an older build of AntDT wrote job.json before the key
// existed, or the value in job.toml could not be read. A key without a default stays missing.
void add_missing_keys(nlohmann::ordered_json& job);

}  // namespace antdt::launcher
