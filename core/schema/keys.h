// Every key of job.toml, once: what may be written, what it is if it is not
// written, and what it means. The reader, to_toml(), job.toml(5) and its test
// all go by this table.
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
  kFiles,         // a list of paths with globs, of files that must be there
  kDirectory,     // a path, of nothing that must be there
  kFile,          // a path of a file that must be there, or ""
  kTextMap,       // a table of strings
  kCount,         // an integer or { min, max }; count, min and max in JSON
  kTables,        // a list of tables, whose keys are "<path>[].<key>"
};

// Of numbers, the items of number lists, sizes in bytes and times in us.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// Keys of one path prefix stand together, in the order of the man page.
struct Key {
  std::string_view path;  // "job.epochs"
  KeyType type;
  // The value where it is not written, as TOML. Empty: it must be written.
  std::string_view fallback;
  std::string_view doc;
  Range range = {};
  std::vector<std::string_view> choices = {};  // of kText and the items of kTexts; empty: any
};

[[nodiscard]] std::span<const Key> keys();

// The key of that path ("inject[].from" for any of the list), or null.
[[nodiscard]] const Key* find_key(std::string_view path);
// Whether some key is below `path`: a table with that name is expected.
[[nodiscard]] bool is_section(std::string_view path);
// The last parts of the keys and the sections directly below `path` ("" is the top).
[[nodiscard]] std::vector<std::string> names_below(std::string_view path);
// Sections directly below `path`, as full paths.
[[nodiscard]] std::vector<std::string> sections_below(std::string_view path);

// The last part of a path, and the part before it ("" at the top).
[[nodiscard]] std::string_view leaf(std::string_view path);
[[nodiscard]] std::string_view parent(std::string_view path);
// The key's name in JSON: its leaf with the unit.
[[nodiscard]] std::string json_name(const Key& key);
// "a whole number", "a time such as \"10s\"", ...: for messages and the man page.
[[nodiscard]] std::string_view describe(KeyType type);

}  // namespace antdt::schema
