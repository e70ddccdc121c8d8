#include "core/schema/keys.h"

#include <algorithm>

namespace antdt::schema {

namespace {

// "inject[3].from" -> "inject[].from": the items of a list share their keys.
std::string without_indices(std::string_view path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) out += c;
    if (c == '[') inside = true;
  }
  return out;
}

// The part of `path` after `section`, or "" if it is not below it.
std::string_view below(std::string_view path, std::string_view section) {
  if (section.empty()) return path;
  if (!path.starts_with(section) || path.size() <= section.size()) return {};
  return path[section.size()] == '.' ? path.substr(section.size() + 1) : std::string_view();
}

}  // namespace

const Key* find_key(std::string_view path) {
  const std::string plain = without_indices(path);
  const auto it = std::ranges::find(keys(), plain, &Key::path);
  return it == keys().end() ? nullptr : &*it;
}

bool is_section(std::string_view path) {
  const std::string plain = without_indices(path);
  return std::ranges::any_of(keys(),
                             [&](const Key& key) { return !below(key.path, plain).empty(); });
}

std::vector<std::string> names_below(std::string_view path) {
  const std::string plain = without_indices(path);
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    const std::string_view rest = below(key.path, plain);
    const std::string name(rest.substr(0, rest.find('.')));
    if (name.empty() || name.ends_with("[]")) continue;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> sections_below(std::string_view path) {
  std::vector<std::string> sections;
  for (const std::string& name : names_below(path)) {
    std::string full = path.empty() ? name : std::string(path) + "." + name;
    if (find_key(full) == nullptr) sections.push_back(std::move(full));
  }
  return sections;
}

std::string_view leaf(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string_view parent(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string json_name(const Key& key) {
  std::string name(leaf(key.path));
  if (key.type == KeyType::kMilliseconds) name += "_ms";
  if (key.type == KeyType::kMicroseconds) name += "_us";
  if (key.type == KeyType::kSize) name += "_bytes";
  return name;
}

std::string_view describe(KeyType type) {
  switch (type) {
    case KeyType::kText:
      return "a string";
    case KeyType::kInteger:
      return "a whole number";
    case KeyType::kNumber:
      return "a number";
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kMilliseconds:
    case KeyType::kMicroseconds:
      return "a time such as \"10s\"";
    case KeyType::kSize:
      return "a size such as \"2GiB\"";
    case KeyType::kTexts:
      return "a list of strings";
    case KeyType::kIntegers:
      return "a list of whole numbers";
    case KeyType::kFiles:
      return "a list of paths";
    case KeyType::kDirectory:
      return "a path";
    case KeyType::kFile:
      return "a path of a file";
    case KeyType::kTextMap:
      return "a table of strings";
    case KeyType::kCount:
      return "a whole number or { min = ..., max = ... }";
    case KeyType::kTables:
      return "a list of tables";
    case KeyType::kFree:
      return "a table";
  }
  return "";
}

}  // namespace antdt::schema
