// Compares docs/reports.md with the structs that it describes.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace antdt::report {

// Names of a struct's fields, in their order.
struct FieldNames {
  std::vector<std::string> names;
  template <class T>
  void operator()(const char* name, const T&) {
    names.emplace_back(name);
  }
  template <class T>
  void if_any(const char* name, const T&) {
    names.emplace_back(name);
  }
  template <class T>
  void later(const char* name, const T&) {
    names.emplace_back(name);
  }
};
template <class T>
[[nodiscard]] std::vector<std::string> names_of() {
  FieldNames names;
  const T value;
  T::fields(value, names);
  return names.names;
}

// The rows of the table under a heading of docs/reports.md.
[[nodiscard]] inline std::vector<std::string> told(const std::string& page,
                                                   const std::string& heading) {
  std::vector<std::string> names;
  std::istringstream lines(page);
  bool inside = false;
  const std::regex row(R"(^\| `([a-z_0-9]+)` \|.*)");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    std::smatch match;
    if (inside && std::regex_match(line, match, row)) names.push_back(match[1]);
  }
  return names;
}

}  // namespace antdt::report
