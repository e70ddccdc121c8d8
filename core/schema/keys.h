// Every key of job.toml, once: which values are allowed, its default, and what it means. The
// reader, to_toml(), job.toml(5) and its test all use this table.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::schema {

enum class KeyType {
  kText,
  kInteger,
  kNumber,
  kBoolean,
  kMilliseconds,  // "10s"; "_ms" in JSON
  kMicroseconds,  // "100us"; "_us" in JSON
  kSize,          // "2GiB"; "_bytes" in JSON
  kTexts,         // a list of strings
  kIntegers,      // a list of integers
  kFiles,         // a list of paths and globs of files that must exist
  kDirectory,     // a path that need not exist
  kFile,          // the path of a file that must exist, or ""
  kTextMap,       // a table of strings
  kCount,         // an integer or { min, max }; count, min and max in JSON
  kTables,        // a list of tables, whose keys are "<path>[].<key>"
  kFree,  // a table whose keys the user chooses: strings, numbers, booleans and lists of them
};

// Range of numbers, of the items of number lists, of sizes in bytes, and of times in us.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// Keys with the same prefix are together, in the order of the man page.
struct Key {
  std::string_view path;  // "job.epochs"
  KeyType type;
  // The default, as TOML. Empty: the key must be written.
  std::string_view fallback;
  std::string_view doc;
  Range range = {};
  std::vector<std::string_view> choices = {};  // for kText and the items of kTexts; empty: any text
  bool open = false;  // a program of the C++ kit may add choices of its own
};

[[nodiscard]] std::span<const Key> keys();

// The key of that path ("inject[].from" for any item of the list), or null.
[[nodiscard]] const Key* find_key(std::string_view path);
// Whether some key is below `path`, so that a table of that name is expected.
[[nodiscard]] bool is_section(std::string_view path);
// The last parts of the keys and sections directly below `path` ("" is the top).
[[nodiscard]] std::vector<std::string> names_below(std::string_view path);
// The sections directly below `path`, as full paths.
[[nodiscard]] std::vector<std::string> sections_below(std::string_view path);

// The last part of a path; section_of: the part before it ("" at the top).
[[nodiscard]] std::string_view leaf(std::string_view path);
[[nodiscard]] std::string_view parent(std::string_view path);
// The key's name in JSON: its leaf with the unit.
[[nodiscard]] std::string json_name(const Key& key);
// "a whole number", "a time such as \"10s\"", ...: for messages and the man page.
[[nodiscard]] std::string_view describe(KeyType type);

}  // namespace antdt::schema
