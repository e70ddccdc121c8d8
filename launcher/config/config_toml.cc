// effective.toml: every key with its value, by the schema.
#include <nlohmann/json.hpp>

#include "core/schema/keys.h"
#include "core/schema/units.h"
#include "launcher/config/config_json.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;

// JSON's strings are TOML's basic strings but for DEL, which TOML wants escaped.
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

std::string text_map(const Json& map) {
  std::string out;
  for (const auto& [name, value] : map.items()) {
    out += fmt::format("{}{} = {}", out.empty() ? " " : ", ", quoted(name),
                       quoted(value.get<std::string>()));
  }
  return out.empty() ? "{}" : "{" + out + " }";
}

// `section` holds the key's value under its name in job.json; "" if it does not
// (a budget that a hand-made configuration leaves out).
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

// The tables below `path`, which is "a.b[]" for an item of a list.
void write_section(const std::string& path, const std::string& header, const Json& section,
                   std::string& out) {
  std::string keys;
  std::string tables;
  for (const std::string& name : schema::names_below(path)) {
    const std::string full = path.empty() ? name : path + "." + name;
    const schema::Key* key = schema::find_key(full);
    if (key == nullptr) {
      write_section(full, "[" + full + "]", section[name], tables);
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
