// Converts label texts into a loss's input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::data {

// The first label decides whether labels are numbers or names of classes. Whole numbers from 0 on
// are classes, too, unless some label is not a class number: then the task is to predict a number.
//
//   kUnknown ──the first one is no number, and may be a name──> kNames
//   kUnknown ──the first number──> kClasses ──a number that is no class, unless frozen──> kNumbers
class Labels {
 public:
  Labels() = default;
  explicit Labels(bool may_be_names) : may_be_names_(may_be_names) {}
  // From an index: class names, or the number of classes.
  Labels(std::vector<std::string> names, std::uint32_t classes);

  // Learns from one more label. Returns what is wrong with it; empty: nothing. When frozen, new
  // names are wrong.
  [[nodiscard]] std::string learn(std::string_view text);
  void freeze() { frozen_ = true; }
  // Number of the class, or the number itself; -1 for an unknown name.
  [[nodiscard]] float value(std::string_view text) const;

  [[nodiscard]] std::uint32_t classes() const;  // 1: the task is to predict a number
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  static constexpr double kMostClasses = 100000;
  enum class Kind : std::uint8_t { kUnknown, kNames, kClasses, kNumbers };

  [[nodiscard]] std::string learn_name(std::string_view text);
  [[nodiscard]] std::string learn_number(std::string_view text, double label);

  bool may_be_names_ = false;
  bool frozen_ = false;
  Kind kind_ = Kind::kUnknown;
  double largest_ = 0;
  std::vector<std::string> names_;  // in order of first appearance
};

}  // namespace antdt::data
