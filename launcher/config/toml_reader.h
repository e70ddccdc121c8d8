// A job.toml's tables against the schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "launcher/config/problems.h"
#include "launcher/config/toml.h"

namespace antdt::launcher {

// The effective configuration of `root`: every key of the schema, with units in
// the names; what is not written has its default. Paths are relative to `base`.
// Everything that the schema forbids is added to `problems`, and then the
// result means nothing. Where keys were written is noted in `places`.
[[nodiscard]] nlohmann::ordered_json read_by_schema(const toml::table& root,
                                                    const std::string& base, Places& places,
                                                    Problems& problems);

// What the section `path` ("" is the top, "inject[0]" an item of a list) is when nothing
// of it is written: the keys that have a default, under their names in JSON.
[[nodiscard]] nlohmann::ordered_json default_values(const std::string& path);

}  // namespace antdt::launcher
