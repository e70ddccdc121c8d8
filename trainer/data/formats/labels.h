// Label texts into what a loss takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::data {

// Labels are numbers, or names of classes, as the first one says. Whole numbers
// from 0 are classes too, unless a label is none of that: then the task is to
// predict a number.
class Labels {
 public:
  Labels() = default;
  explicit Labels(bool may_be_names) : may_be_names_(may_be_names) {}
  // As stored in an index: class names, or the number of classes.
  Labels(std::vector<std::string> names, std::uint32_t classes);

  // Looks at one more label; not empty: what is wrong with it. When frozen,
  // names that are new are wrong.
  [[nodiscard]] std::string learn(std::string_view text);
  void freeze() { frozen_ = true; }
  // Number of the class, or the number itself; -1 for a name that is unknown.
  [[nodiscard]] float value(std::string_view text) const;

  [[nodiscard]] std::uint32_t classes() const;  // 1: a number to predict
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
