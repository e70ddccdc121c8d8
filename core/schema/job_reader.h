// Reads a job's effective configuration (RUN/job.json, WorkerWelcome.config_json) by the keys of
// job.toml. The table in keys.h has the JSON name of each key, and its default for a text in which
// an older build did not write it, so no reader has defaults of its own.
#pragma once

#include <chrono>
#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/json_integer.h"
#include "core/names.h"
#include "core/result.h"
#include "core/schema/keys.h"

namespace antdt::schema {

// The default of a key, in the form of JSON: "10s" is 10000 for kMilliseconds. Null for a key that
// must be written and for kCount. Paths are as written.
[[nodiscard]] nlohmann::json default_value(const Key& key);

// After the first problem nothing more is read; status() returns it.
class JobReader {
 public:
  explicit JobReader(const std::string& config_json);

  // The value of a key such as "trainer.lr". A path that is in no table is a defect of the program.
  template <class T>
  void read(std::string_view path, T& value) {
    convert(path, value_of(path), value);
  }
  // The largest number of a kCount key such as "roles.worker.count": the `max` of { min, max }.
  void read_largest(std::string_view path, std::uint32_t& value);
  // Calls read_item() for each table of the list at `path`. During the call, the keys of that table
  // are read as "<path>[].<key>".
  template <class F>
  void each(std::string_view path, F read_item) {
    const nlohmann::json list = value_of(path);
    if (!list.is_array()) return problem(path, "it is not a list");
    const Scope outer = scope_;
    for (const nlohmann::json& item : list) {
      scope_ = {&item, path.size() + 3};
      read_item();
    }
    scope_ = outer;
  }
  // The error (kUsage) names the key.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  struct Scope {
    const nlohmann::json* json;
    std::size_t skip;  // how many letters of a path lead to `json`
  };
  template <class T>
  static constexpr bool kIsDuration = requires(T value) {
    value.count();
    typename T::period;
  };
  // What contains the key; null if the configuration does not.
  [[nodiscard]] const nlohmann::json* section_of(std::string_view path) const;
  [[nodiscard]] nlohmann::json value_of(std::string_view path);
  void problem(std::string_view path, std::string_view what);

  template <class T>
  void convert(std::string_view path, const nlohmann::json& json, T& value) {
    if (!status_) return;
    try {
      if constexpr (kIsDuration<T>) {
        const Key* key = find_key(path);
        const auto count = json_integer<std::int64_t>(json);
        value = key->type == KeyType::kMicroseconds
                    ? std::chrono::duration_cast<T>(std::chrono::microseconds(count))
                    : std::chrono::duration_cast<T>(std::chrono::milliseconds(count));
      } else if constexpr (Named<T>) {
        const auto named = by_name<T>(json.get<std::string>());
        if (!named) return problem(path, fmt::format("it cannot be {}", json.dump()));
        value = *named;
      } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        value = json_integer<T>(json);
      } else {
        value = json.get<T>();
      }
    } catch (const nlohmann::json::exception& e) {
      problem(path, e.what());
    }
  }

  nlohmann::json job_;
  Scope scope_{&job_, 0};
  Status status_;
};

}  // namespace antdt::schema
