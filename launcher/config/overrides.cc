#include "launcher/config/overrides.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/schema/keys.h"

namespace antdt::launcher {

namespace {

// Parses "value = <text>" as a table with that one key. Text that is not TOML becomes a string.
toml::table parse_value(const std::string& path, const std::string& text) {
  const schema::Key* key = schema::find_key(path);
  toml::table holder;
  if (toml::parse_result parsed = toml::parse("value = " + text);
      parsed && parsed.table().size() == 1) {
    holder = std::move(parsed).table();
  } else {
    holder.insert("value", text);
  }
  if (key == nullptr) return holder;
  const bool wants_text =
      key->type != schema::KeyType::kInteger && key->type != schema::KeyType::kNumber &&
      key->type != schema::KeyType::kBoolean && key->type != schema::KeyType::kCount;
  if (wants_text && holder["value"].is_value() && !holder["value"].is_string()) {
    holder.insert_or_assign("value", text);
  }
  const bool wants_list =
      key->type == schema::KeyType::kTexts || key->type == schema::KeyType::kFiles;
  if (wants_list && holder["value"].is_string()) {
    holder.insert_or_assign("value", toml::array{*holder["value"].value<std::string>()});
  }
  return holder;
}

// The table that holds the last part of `path`, or null if a part above it is not a table.
toml::table* table_above(toml::table& root, std::string_view path) {
  toml::table* table = &root;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string_view part = path.substr(0, dot);
    path.remove_prefix(dot + 1);
    if (!table->contains(part)) table->insert(part, toml::table{});
    table = table->get(part)->as_table();
    if (table == nullptr) return nullptr;
  }
  return table;
}

bool is_path(std::string_view path) {
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos &&
         path.find_first_of("[]\"' \t") == std::string_view::npos;
}

// As TOML in one line.
std::string value_text(const std::string& path, const std::string& text) {
  const auto quoted = [](const std::string& value) { return nlohmann::json(value).dump(); };
  toml::table holder = parse_value(path, text);
  const toml::node& value = *holder.get("value");
  if (value.is_string()) return quoted(*value.value<std::string>());
  const auto* const list = value.as_array();
  const bool is_made = list != nullptr && !text.starts_with('[');  // of one text
  return is_made ? fmt::format("[{}]", quoted(*list->get(0)->value<std::string>())) : text;
}

}  // namespace

void apply_overrides(toml::table& root, const std::vector<std::string>& overrides, Places& places,
                     Problems& problems) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    const std::string path = text.substr(0, equals);
    if (equals == std::string::npos || !is_path(path)) {
      problems.add_line("--set " + text + ": write key=value, as in --set batch.global=512");
      continue;
    }
    places.set_override(path, text);
    toml::table* table = table_above(root, path);
    if (table == nullptr) {
      problems.add(path, "'" + std::string(schema::parent(path)) + "' is not a table");
      continue;
    }
    toml::table holder = parse_value(path, text.substr(equals + 1));
    table->insert_or_assign(schema::leaf(path), std::move(*holder.get("value")));
  }
}

Result<std::string> inline_table(const std::string& list, const std::vector<std::string>& keys) {
  std::vector<std::string> pairs;
  for (const std::string& text : keys) {
    const std::size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    if (equals == std::string::npos || !is_path(key) || key.find('.') != std::string::npos) {
      return fail(ErrorKind::kUsage, "{}: write KEY=VALUE, with a key of [[{}]]", text, list);
    }
    pairs.push_back(fmt::format(
        "{} = {}", key, value_text(fmt::format("{}[].{}", list, key), text.substr(equals + 1))));
  }
  return fmt::format("{{ {} }}", fmt::join(pairs, ", "));
}

}  // namespace antdt::launcher
