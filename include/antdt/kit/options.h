// [user] of job.toml: the options of a program of one's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#define ANTDT_KIT_API __attribute__((visibility("default")))

namespace antdt::kit {

// What a user can mend: the program ends with this text and exit code 2. Whatever the program gives
// to the kit may throw it.
class ANTDT_KIT_API UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& message) : std::runtime_error(message) {}
  ~UsageError() override;
};

// Each read names a key, and the value where job.toml has none. A key that is there and of another
// type, or that has no fallback and is missing, is a UsageError that names it. Keys that the
// program has read of none of its parts are errors, too: all of them are read while the reader, the
// model, the optimizer, the metric and the schedule are made.
class ANTDT_KIT_API Options {
 public:
  using Integers = std::vector<std::int64_t>;
  using Numbers = std::vector<double>;
  using Texts = std::vector<std::string>;
  using Value = std::variant<bool, std::int64_t, double, std::string, Integers, Numbers, Texts>;

  Options() = default;
  explicit Options(std::map<std::string, Value> values) : values_(std::move(values)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key,
                                     std::optional<std::int64_t> fallback = {}) const;
  // A whole number is a number, too.
  [[nodiscard]] double number(const std::string& key, std::optional<double> fallback = {}) const;
  [[nodiscard]] bool flag(const std::string& key, std::optional<bool> fallback = {}) const;
  [[nodiscard]] std::string text(const std::string& key,
                                 std::optional<std::string> fallback = {}) const;
  [[nodiscard]] Integers integers(const std::string& key,
                                  std::optional<Integers> fallback = {}) const;
  [[nodiscard]] Numbers numbers(const std::string& key, std::optional<Numbers> fallback = {}) const;
  [[nodiscard]] Texts texts(const std::string& key, std::optional<Texts> fallback = {}) const;

  [[nodiscard]] bool has(const std::string& key) const;
  // Keys of job.toml that nothing has read so far.
  [[nodiscard]] std::vector<std::string> unread() const;
  // What was read so far, there or not.
  [[nodiscard]] std::vector<std::string> known() const;

 private:
  template <class T>
  T read(const std::string& key, const char* kind, const std::optional<T>& fallback) const;

  std::map<std::string, Value> values_;
  mutable std::set<std::string> read_;
};

}  // namespace antdt::kit
