// A job.json that an older build of AntDT wrote, for this folder's .cc files.
#pragma once

#include <nlohmann/json.hpp>

namespace antdt::launcher {

// What came to job.toml after that build has its default, so that its runs can be
// resumed. What never had a default stays missing.
void add_newer_keys(nlohmann::ordered_json& job);

}  // namespace antdt::launcher
