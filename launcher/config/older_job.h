// A configuration that lacks keys, for this folder's .cc files.
#pragma once

#include <nlohmann/json.hpp>

namespace antdt::launcher {

// A key that is missing gets its default: an older build of AntDT wrote job.json before the key
// came, or job.toml has a value there that could not be read. A key without a default stays
// missing.
void add_missing_keys(nlohmann::ordered_json& job);

}  // namespace antdt::launcher
