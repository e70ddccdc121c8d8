// Writes effective.toml: every key with its value, in the order of the schema.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/schema/keys.h"
#include "core/schema/units.h"
#include "launcher/config/config_json.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;

// JSON strings are valid TOML basic strings, except that TOML requires DEL to be escaped.
std::string quoted(const std::string& text) {
  std::string out = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = out.find('\x7f'); at != std::string::npos; at = out.find('\x7f')) {
    out.replace(at, 1, "\\u007f");
  }
  return out;
}

std::string list(const Json& items) {
  std::string out;
  for (const Json& item : items) {
    out += (out.empty() ? "" : ", ");
    out += item.is_string() ? quoted(item.get<std::string>()) : item.dump();
  }
  return "[" + out + "]";
}

bool is_bare(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

std::string free_value(const Json& value) {
  if (value.is_string()) return quoted(value.get<std::string>());
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const Json& item : value) out += (out.empty() ? "" : ", ") + free_value(item);
  return "[" + out + "]";
}

std::string text_map(const Json& map) {
  std::string out;
  for (const auto& [name, value] : map.items()) {
    out += fmt::format("{}{} = {}", out.empty() ? " " : ", ", quoted(name),
                       quoted(value.get<std::string>()));
  }
  return out.empty() ? "{}" : "{" + out + " }";
}

// `section` has the key's value under its name in job.json. Returns "" if it does not (a budget
// that a hand-written configuration leaves out).
std::string value_of(const schema::Key& key, const Json& section) {
  if (key.type == schema::KeyType::kCount) {
    if (section["min"] == section["max"]) return section["count"].dump();
    return fmt::format("{{ min = {}, max = {} }}", section["min"].dump(), section["max"].dump());
  }
  const auto found = section.find(schema::json_name(key));
  if (found == section.end()) return "";
  const Json& value = *found;
  switch (key.type) {
    case schema::KeyType::kText:
    case schema::KeyType::kDirectory:
    case schema::KeyType::kFile:
      return quoted(value.get<std::string>());
    case schema::KeyType::kMilliseconds:
      return quoted(schema::format_duration(std::chrono::milliseconds(value.get<std::int64_t>())));
    case schema::KeyType::kMicroseconds:
      return quoted(schema::format_duration(std::chrono::microseconds(value.get<std::int64_t>())));
    case schema::KeyType::kSize:
      return quoted(schema::format_size(value.get<std::uint64_t>()));
    case schema::KeyType::kTexts:
    case schema::KeyType::kIntegers:
    case schema::KeyType::kFiles:
      return list(value);
    case schema::KeyType::kTextMap:
      return text_map(value);
    default:
      return value.dump();
  }
}

// Numbers keep their kind: JSON writes 1.0 as TOML does.
std::string free_table(const std::string& header, const Json& table) {
  if (table.empty()) return "";
  std::string out = "\n" + header + "\n";
  for (const auto& [name, value] : table.items()) {
    out += fmt::format("{} = {}\n", is_bare(name) ? name : quoted(name), free_value(value));
  }
  return out;
}

// Writes the tables below `path`, which is "a.b[]" for an item of a list.
void write_section(const std::string& path, const std::string& header, const Json& section,
                   std::string& out) {
  std::string keys;
  std::string tables;
  for (const std::string& name : schema::names_below(path)) {
    const std::string full = path.empty() ? name : path + "." + name;
    const schema::Key* key = schema::find_key(full);
    if (key == nullptr) {
      write_section(full, "[" + full + "]", section[name], tables);
    } else if (key->type == schema::KeyType::kFree) {
      tables += free_table("[" + full + "]", section[name]);
    } else if (key->type == schema::KeyType::kTables) {
      for (const Json& item : section[name]) {
        write_section(full + "[]", "[[" + full + "]]", item, tables);
      }
    } else {
      const std::string value = value_of(*key, section);
      if (!value.empty()) keys += fmt::format("{} = {}\n", name, value);
    }
  }
  if (!keys.empty() && !header.empty()) out += "\n" + header + "\n";
  out += keys + tables;
}

}  // namespace

std::string to_toml(const JobConfig& config) {
  std::string out = "# The job as it runs: every key, defaults included.\n";
  write_section("", "", config_to_json(config), out);
  return out;
}

}  // namespace antdt::launcher
