// Reads the tables of a job.toml according to the schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/schema/keys.h"
#include "launcher/config/problems.h"
#include "launcher/config/toml.h"

namespace antdt::launcher {

// The effective configuration of `root`: every key of the schema, with units in the names; a key
// that is not written has its default. Paths are relative to `base`. Everything that the schema
// forbids is added to `problems`; then the result is meaningless. The places of keys are added to
// `places`.
[[nodiscard]] nlohmann::ordered_json read_by_schema(const toml::table& root,
                                                    const std::string& base, Places& places,
                                                    Problems& problems);

// The section `path` ("" is the top, "inject[0]" an item of a list) if nothing of it is written:
// the keys that have a default, under their names in JSON.
[[nodiscard]] nlohmann::ordered_json default_values(const std::string& path);

[[nodiscard]] bool is_choice(const schema::Key& key, std::string_view value);
// What is wrong with a value that is no choice of `key`: "'adm' is none of "sgd", … (did you …?)".
[[nodiscard]] std::string not_a_choice(const schema::Key& key, const std::string& value);

}  // namespace antdt::launcher
