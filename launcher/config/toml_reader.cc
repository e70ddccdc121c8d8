#include "launcher/config/toml_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/schema/keys.h"
#include "core/schema/units.h"
#include "launcher/config/suggest.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {

namespace {

using Json = nlohmann::ordered_json;

std::string join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string_view kind_of(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (node.is_string()) return "a string";
  if (node.is_integer()) return "a whole number";
  if (node.is_floating_point()) return "a decimal number";
  if (node.is_boolean()) return "true or false";
  return "a date or a time of day";
}

// Converts one value to the type of its key; problems with it go to `problems`.
class Converter {
 public:
  Converter(const schema::Key& key, std::string path, const std::string& base, Problems& problems)
      : key_(key), path_(std::move(path)), base_(base), problems_(problems) {}

  [[nodiscard]] Json convert(const toml::node& node) {
    switch (key_.type) {
      case schema::KeyType::kText:
        return text(node, path_);
      case schema::KeyType::kInteger:
        return integer(node, path_);
      case schema::KeyType::kNumber:
        return number(node);
      case schema::KeyType::kBoolean:
        if (!node.is_boolean()) return wrong_type(node);
        return *node.value<bool>();
      case schema::KeyType::kMilliseconds:
      case schema::KeyType::kMicroseconds:
        return duration(node);
      case schema::KeyType::kSize:
        return size(node);
      case schema::KeyType::kTexts:
        return each(node, [&](const toml::node& item, const std::string& where) {
          return text(item, where);
        });
      case schema::KeyType::kIntegers:
        return each(node, [&](const toml::node& item, const std::string& where) {
          return integer(item, where);
        });
      case schema::KeyType::kFiles:
        return files(node);
      case schema::KeyType::kDirectory:
        if (!node.is_string()) return wrong_type(node);
        return absolute_path(*node.value<std::string>(), base_);
      case schema::KeyType::kFile:
        return file(node);
      case schema::KeyType::kTextMap:
        return text_map(node);
      case schema::KeyType::kFree:
        return free_table(node);
      default:
        return nullptr;
    }
  }

 private:
  Json problem(const std::string& where, const std::string& text) {
    problems_.add(where, text);
    return nullptr;
  }
  Json wrong_type(const toml::node& node) {
    return problem(path_,
                   fmt::format("must be {}, not {}", schema::describe(key_.type), kind_of(node)));
  }
  bool in_range(double value, const std::string& where, const std::string& least,
                const std::string& most) {
    if (value < key_.range.min) return problem(where, "must be at least " + least), false;
    if (value > key_.range.max) return problem(where, "must be at most " + most), false;
    return true;
  }
  bool in_range(double value, const std::string& where) {
    return in_range(value, where, fmt::format("{}", key_.range.min),
                    fmt::format("{}", key_.range.max));
  }

  Json text(const toml::node& node, const std::string& where) {
    if (!node.is_string()) {
      return problem(where, fmt::format("must be a string, not {}", kind_of(node)));
    }
    const std::string value = *node.value<std::string>();
    if (!key_.open && !key_.choices.empty() && !is_choice(key_, value)) {
      return problem(where, not_a_choice(key_, value));
    }
    return value;
  }

  Json integer(const toml::node& node, const std::string& where) {
    if (!node.is_integer()) {
      return problem(where, fmt::format("must be a whole number, not {}", kind_of(node)));
    }
    const std::int64_t value = *node.value<std::int64_t>();
    if (where == "schema" && static_cast<double>(value) > key_.range.max) {
      return problem(where,
                     fmt::format("this job.toml is for a newer release: it has format {}, and "
                                 "this release of antdt reads format {}",
                                 value, key_.range.max));
    }
    return in_range(static_cast<double>(value), where) ? Json(value) : Json();
  }
  Json number(const toml::node& node) {
    if (!node.is_number()) return wrong_type(node);
    const double value = *node.value<double>();
    if (!std::isfinite(value)) return problem(path_, "must be a finite number");
    return in_range(value, path_) ? Json(value) : Json();
  }

  Json duration(const toml::node& node) {
    if (node.is_integer() && *node.value<std::int64_t>() == 0) return 0;
    if (!node.is_string()) return wrong_type(node);
    const auto us = schema::parse_duration(*node.value<std::string>());
    if (!us) return problem(path_, us.error().message);
    const auto limit = [](double value) {
      return std::isfinite(value) ? schema::format_duration(
                                        std::chrono::microseconds(static_cast<std::int64_t>(value)))
                                  : std::string();
    };
    if (!in_range(static_cast<double>(us->count()), path_, limit(key_.range.min),
                  limit(key_.range.max))) {
      return nullptr;
    }
    if (key_.type == schema::KeyType::kMicroseconds) return us->count();
    if (us->count() % 1000 != 0) return problem(path_, "must be a whole number of milliseconds");
    return us->count() / 1000;
  }
  Json size(const toml::node& node) {
    if (!node.is_string()) return wrong_type(node);
    const auto bytes = schema::parse_size(*node.value<std::string>());
    if (!bytes) return problem(path_, bytes.error().message);
    if (static_cast<double>(*bytes) < key_.range.min) {
      return problem(path_, "must be at least " +
                                schema::format_size(static_cast<std::uint64_t>(key_.range.min)));
    }
    return *bytes;
  }

  template <class F>
  Json each(const toml::node& node, F convert_item) {
    if (!node.is_array()) return wrong_type(node);
    Json list = Json::array();
    for (std::size_t i = 0; i < node.as_array()->size(); ++i) {
      list.push_back(convert_item(*node.as_array()->get(i), fmt::format("{}[{}]", path_, i)));
    }
    return list;
  }
  Json files(const toml::node& node) {
    std::set<std::string> seen;
    Json flat = Json::array();
    const Json lists = each(node, [&](const toml::node& item, const std::string& where) -> Json {
      const Json pattern = text(item, where);
      if (pattern.is_null()) return nullptr;
      const auto found = expand_files(pattern.get<std::string>(), base_);
      if (!found) return problem(where, found.error().message);
      for (const std::string& file : *found) {
        if (!seen.insert(file).second) return problem(where, "'" + file + "' is listed twice");
        flat.push_back(file);
      }
      return nullptr;
    });
    return lists.is_null() ? Json() : flat;
  }
  Json file(const toml::node& node) {
    if (!node.is_string()) return wrong_type(node);
    const std::string path = *node.value<std::string>();
    if (path.empty()) return path;
    const auto found = expand_files(path, base_);
    if (!found) return problem(path_, found.error().message);
    if (found->size() == 1) return found->front();
    return problem(path_, fmt::format("'{}' is {} files: one is needed", path, found->size()));
  }
  Json text_map(const toml::node& node) {
    if (!node.is_table()) return wrong_type(node);
    Json map = Json::object();
    for (const auto& [name, value] : *node.as_table()) {
      map[std::string(name.str())] = text(value, path_ + "." + std::string(name.str()));
    }
    return map;
  }

  // Its keys have places of their own (Reader::convert).
  Json free_table(const toml::node& node) {
    if (!node.is_table()) return wrong_type(node);
    Json table = Json::object();
    for (const auto& [name, value] : *node.as_table()) {
      table[std::string(name.str())] = free_value(value, path_ + "." + std::string(name.str()));
    }
    return table;
  }
  Json free_value(const toml::node& node, const std::string& where) {
    if (node.is_string()) return *node.value<std::string>();
    if (node.is_integer()) return *node.value<std::int64_t>();
    if (node.is_boolean()) return *node.value<bool>();
    if (node.is_floating_point()) {
      const double value = *node.value<double>();
      return std::isfinite(value) ? Json(value) : problem(where, "must be a finite number");
    }
    if (!node.is_array()) {
      return problem(where, fmt::format("must be a string, a number, true or false, or a list of "
                                        "these, not {}",
                                        kind_of(node)));
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < node.as_array()->size(); ++i) {
      list.push_back(free_value(*node.as_array()->get(i), fmt::format("{}[{}]", where, i)));
    }
    return list;
  }

  const schema::Key& key_;
  std::string path_;
  const std::string& base_;
  Problems& problems_;
};

class Reader {
 public:
  Reader(const std::string& base, Places& places, Problems& problems)
      : base_(base), places_(places), problems_(problems) {}

  // `table` may be null if nothing of this section was written.
  Json section(const std::string& path, const toml::table* table) {
    if (table != nullptr) note_and_check_names(path, *table);
    Json out = Json::object();
    for (const std::string& name : schema::names_below(path)) {
      const std::string full = join(path, name);
      const toml::node* node = table != nullptr ? table->get(name) : nullptr;
      if (const schema::Key* key = schema::find_key(full); key != nullptr) {
        read_key(*key, full, node, out);
      } else if (node != nullptr && !node->is_table()) {
        problems_.add(full, fmt::format("must be a table, not {}", kind_of(*node)));
      } else {
        out[name] = section(full, node != nullptr ? node->as_table() : nullptr);
      }
    }
    return out;
  }

 private:
  void note(const std::string& path, const toml::table& table) {
    for (const auto& [name, node] : table) {
      const auto& begin = name.source().begin;
      places_.set(join(path, name.str()), begin.line, begin.column);
    }
  }
  void note_and_check_names(const std::string& path, const toml::table& table) {
    note(path, table);
    const std::vector<std::string> known = schema::names_below(path);
    for (const auto& [name, node] : table) {
      const std::string full = join(path, name.str());
      if (std::ranges::find(known, name.str()) != known.end()) continue;
      // A failure class is not a misplaced key: the same name elsewhere ("workers") means something
      // else.
      problems_.add(full, path == "failure.budgets"
                              ? "unknown class of failure: the classes are " + listed(known)
                              : "unknown key" + suggestion(path, std::string(name.str()), known));
    }
  }

  // Suggests a similar name in the same section, else the same name in another one. The suggested
  // key is then not reported as missing.
  std::string suggestion(const std::string& path, const std::string& name,
                         const std::vector<std::string>& known) {
    std::string meant = nearest(name, known);
    std::string meant_path = meant.empty() ? "" : join(path, meant);
    if (meant.empty()) {
      for (const schema::Key& key : schema::keys()) {
        if (schema::leaf(key.path) == name) meant = meant_path = key.path;
      }
    }
    if (meant.empty()) return ": known here are " + listed(known);
    problems_.explain(meant_path);
    return ": did you mean '" + meant + "'?";
  }

  static std::string listed(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
    return list;
  }

  void read_key(const schema::Key& key, const std::string& path, const toml::node* node,
                Json& out) {
    if (node == nullptr && key.fallback.empty()) {
      problems_.add(path, fmt::format("is missing: {} ({})", schema::describe(key.type), key.doc));
      return;
    }
    if (node != nullptr) return convert(key, path, *node, out);
    const toml::parse_result fallback = toml::parse(fmt::format("v = {}", key.fallback));
    convert(key, path, *fallback.table().get("v"), out);
  }

  void convert(const schema::Key& key, const std::string& path, const toml::node& node, Json& out) {
    if (key.type == schema::KeyType::kCount) {
      count(key, path, node, out);
    } else if (key.type == schema::KeyType::kTables) {
      put(key, tables(path, node), out);
    } else {
      if (key.type == schema::KeyType::kFree && node.is_table()) note(path, *node.as_table());
      put(key, Converter(key, path, base_, problems_).convert(node), out);
    }
  }
  // Null: the value could not be read, and is left out.
  static void put(const schema::Key& key, Json value, Json& out) {
    if (!value.is_null()) out[schema::json_name(key)] = std::move(value);
  }

  void count(const schema::Key& key, const std::string& path, const toml::node& node, Json& out) {
    schema::Key plain = key;
    plain.type = schema::KeyType::kInteger;
    if (!node.is_table()) {
      if (!node.is_integer()) {
        return problems_.add(
            path, fmt::format("must be {}, not {}", schema::describe(key.type), kind_of(node)));
      }
      out["count"] = Converter(plain, path, base_, problems_).convert(node);
      out["min"] = out["max"] = out["count"];
      return;
    }
    const toml::table& table = *node.as_table();
    for (const auto& [name, value] : table) {
      places_.set(join(path, name.str()), name.source().begin.line, name.source().begin.column);
      if (name.str() != "min" && name.str() != "max") {
        problems_.add(join(path, name.str()), "unknown key: known here are min, max");
      }
    }
    for (const char* name : {"min", "max"}) {
      const std::string full = join(path, name);
      if (const toml::node* bound = table.get(name); bound != nullptr) {
        out[name] = Converter(plain, full, base_, problems_).convert(*bound);
      } else {
        problems_.add(full, "is missing: write both min and max, or one number");
      }
    }
    out["count"] = out["max"];
    if (out["min"].is_number() && out["max"].is_number() && out["min"] > out["max"]) {
      problems_.add(
          path, fmt::format("min {} is more than max {}", out["min"].dump(), out["max"].dump()));
    }
  }

  Json tables(const std::string& path, const toml::node& node) {
    if (!node.is_array()) {
      problems_.add(path, fmt::format("must be a list of tables, not {}", kind_of(node)));
      return nullptr;
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < node.as_array()->size(); ++i) {
      const toml::node& item = *node.as_array()->get(i);
      const std::string where = fmt::format("{}[{}]", path, i);
      places_.set(where, item.source().begin.line, item.source().begin.column);
      if (item.is_table()) {
        list.push_back(section(where, item.as_table()));
      } else {
        problems_.add(where, fmt::format("must be a table, not {}", kind_of(item)));
      }
    }
    return list;
  }

  const std::string& base_;
  Places& places_;
  Problems& problems_;
};

}  // namespace

bool is_choice(const schema::Key& key, std::string_view value) {
  return std::ranges::find(key.choices, value) != key.choices.end();
}

std::string not_a_choice(const schema::Key& key, const std::string& value) {
  std::vector<std::string> choices;
  std::string list;
  for (const std::string_view choice : key.choices) {
    if (choice.empty()) continue;
    choices.emplace_back(choice);
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", choice);
  }
  const std::string meant = nearest(value, choices);
  return fmt::format("'{}' is none of {}{}", value, list,
                     meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant));
}

nlohmann::ordered_json read_by_schema(const toml::table& root, const std::string& base,
                                      Places& places, Problems& problems) {
  return Reader(base, places, problems).section("", &root);
}

nlohmann::ordered_json default_values(const std::string& path) {
  Places nowhere("");
  Problems ignored(nowhere);  // keys that must be written are missing here
  return Reader("", nowhere, ignored).section(path, nullptr);
}

}  // namespace antdt::launcher
