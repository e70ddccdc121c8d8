// Converts label texts into a loss's input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::data {

// The first label decides whether labels are numbers or names of classes. Whole numbers from 0 on
// are classes, too, unless some label is not a class number: then the task is to predict a number.
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

  bool may_be_names_ = false;
  bool begun_ = false;
  bool frozen_ = false;
  bool names_used_ = false;
  bool whole_ = true;  // every label so far is a class number
  double largest_ = 0;
  std::vector<std::string> names_;  // in order of first appearance
};

}  // namespace antdt::data
