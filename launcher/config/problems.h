// All problems of a job.toml, each with its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

// Whether it is a name of 1 to 64 letters, digits, '-', '_' and '.' that can name a directory.
inline bool is_plain_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
         std::ranges::all_of(name, good);
}

// "data.paths[1]" -> "data.paths" -> "data"; false if nothing is left.
inline bool cut_last(std::string& key) {
  const std::size_t cut = key.find_last_of(".[");
  if (cut == std::string::npos) return false;
  key.resize(cut);
  return true;
}

// Where keys were written: "job.toml:3:1" or "--set batch.global=0". For a key that was not written
// it is the nearest enclosing table that was written, else the file.
class Places {
 public:
  explicit Places(std::string file) : file_(std::move(file)) {}

  // Keys below one that was given with --set have the same place, whatever is found later.
  void set_override(const std::string& key, const std::string& text) {
    places_[key] = "--set " + text;
    overridden_.insert(key);
  }
  void set(const std::string& key, std::size_t line, std::size_t column) {
    if (line == 0 || under_override(key)) return;
    places_[key] = file_ + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
  [[nodiscard]] bool written(const std::string& key) const { return places_.contains(key); }

  [[nodiscard]] std::string of(std::string key) const {
    while (true) {
      if (const auto it = places_.find(key); it != places_.end()) return it->second;
      if (!cut_last(key)) return file_;
    }
  }

 private:
  bool under_override(std::string key) const {
    do {
      if (overridden_.contains(key)) return true;
    } while (cut_last(key));
    return false;
  }

  std::string file_;
  std::map<std::string, std::string> places_;
  std::set<std::string> overridden_;
};

class Problems {
 public:
  explicit Problems(const Places& places) : places_(places) {}
  // "job.toml:3:1: batch.global: must be at least 1"
  void add(const std::string& key, const std::string& text) {
    lines_.push_back({key, places_.of(key) + ": " + key + ": " + text});
    keys_.insert(key);
  }
  // For a problem that is found before there are keys.
  void add_line(std::string line) { lines_.push_back({"", std::move(line)}); }
  // The problem of another key explains why this key, and all keys below it, are missing: the other
  // key is this one misspelled. Unless this key was written as well, its own problems are not
  // reported.
  void explain(const std::string& key) { explained_.insert(key); }
  // Whether the key itself, or a part of it ("data.paths[1]" for "data.paths"), has a problem.
  [[nodiscard]] bool has(const std::string& key) const {
    if (explained(key)) return true;
    for (auto it = keys_.lower_bound(key); it != keys_.end() && it->starts_with(key); ++it) {
      if (it->size() == key.size() || (*it)[key.size()] == '.' || (*it)[key.size()] == '[') {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool written(const std::string& key) const { return places_.written(key); }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  [[nodiscard]] Error error() const {
    std::string message;
    for (const Line& line : lines_) {
      if (explained(line.key)) continue;
      if (!message.empty()) message += '\n';
      message += line.text;
    }
    return Error{ErrorKind::kUsage, message};
  }

 private:
  struct Line {
    std::string key;
    std::string text;
  };
  [[nodiscard]] bool explained(std::string key) const {
    do {
      if (explained_.contains(key) && !places_.written(key)) return true;
    } while (cut_last(key));
    return false;
  }

  const Places& places_;
  std::vector<Line> lines_;
  std::set<std::string> keys_;
  std::set<std::string> explained_;
};

}  // namespace antdt::launcher
