#include "trainer/data/formats/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace antdt::data {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace

Labels::Labels(std::vector<std::string> names, std::uint32_t classes)
    : kind_(!names.empty() ? Kind::kNames
            : classes > 1  ? Kind::kClasses
                           : Kind::kNumbers),
      largest_(classes > 1 ? classes - 1.0 : 0),
      names_(std::move(names)) {}

std::string Labels::learn(std::string_view text) {
  if (text.empty()) return "the label is missing";
  const std::optional<double> as_number = number(text);
  // From: kUnknown. To: kNames or kClasses, by the first label.
  if (kind_ == Kind::kUnknown && as_number) kind_ = Kind::kClasses;
  if (kind_ == Kind::kUnknown && may_be_names_) kind_ = Kind::kNames;
  if (kind_ == Kind::kNames) return learn_name(text);
  if (!as_number) return fmt::format("the label is '{}', not a number", text.substr(0, 40));
  return learn_number(text, *as_number);
}

std::string Labels::learn_name(std::string_view text) {
  if (std::find(names_.begin(), names_.end(), text) != names_.end()) return {};
  if (frozen_) {
    return fmt::format("the label '{}' is none of the training data's classes ({})",
                       text.substr(0, 40), fmt::join(names_, ", "));
  }
  names_.emplace_back(text);
  return {};
}

std::string Labels::learn_number(std::string_view text, double label) {
  const bool is_class = label >= 0 && label < kMostClasses && label == std::floor(label);
  if (frozen_) {
    if (kind_ == Kind::kClasses && (!is_class || label > largest_)) {
      return fmt::format("the label is {}, and the training data's classes are 0 to {}", text,
                         largest_);
    }
    return {};
  }
  // From: kClasses. To: kNumbers, for good: one label that is no class is enough.
  if (!is_class) kind_ = Kind::kNumbers;
  largest_ = std::max(largest_, label);
  return {};
}

float Labels::value(std::string_view text) const {
  if (kind_ != Kind::kNames) return static_cast<float>(number(text).value_or(-1));
  const auto found = std::find(names_.begin(), names_.end(), text);
  return found == names_.end() ? -1.0F : static_cast<float>(found - names_.begin());
}

std::uint32_t Labels::classes() const {
  switch (kind_) {
    case Kind::kNames:
      return static_cast<std::uint32_t>(std::max<std::size_t>(names_.size(), 2));
    case Kind::kNumbers:
      return 1;
    case Kind::kUnknown:
    case Kind::kClasses:
      break;
  }
  return std::max(static_cast<std::uint32_t>(largest_) + 1, 2U);
}

}  // namespace antdt::data
