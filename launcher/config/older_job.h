// Completes a configuration that lacks keys, and knows the older names of keys. For this folder's
// .cc files only.
#pragma once

#include <nlohmann/json.hpp>

#include "launcher/config/problems.h"
#include "launcher/config/toml.h"

namespace antdt::launcher {

// Gives missing keys their defaults: either an older build of AntDT wrote job.json before the key
// existed, or the value in job.toml could not be read. A key without a default stays missing.
void add_missing_keys(nlohmann::ordered_json& job);

// `resources.devices` of a role is `resources.gpus` under its older name. Writing both is a
// problem.
void rename_older_keys(toml::table& root, Problems& problems);

}  // namespace antdt::launcher
