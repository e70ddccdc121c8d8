#include "trainer/data/formats/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

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
    : begun_(true), names_used_(!names.empty()), whole_(classes > 1), names_(std::move(names)) {
  largest_ = classes > 1 ? classes - 1.0 : 0;
}

std::string Labels::learn(std::string_view text) {
  if (text.empty()) return "the label is missing";
  const std::optional<double> as_number = number(text);
  if (!begun_) {
    begun_ = true;
    names_used_ = may_be_names_ && !as_number;
  }
  if (names_used_) {
    if (std::find(names_.begin(), names_.end(), text) != names_.end()) return {};
    if (frozen_) {
      return fmt::format("the label '{}' is none of the training data's classes ({})",
                         text.substr(0, 40), fmt::join(names_, ", "));
    }
    names_.emplace_back(text);
    return {};
  }
  if (!as_number) return fmt::format("the label is '{}', not a number", text.substr(0, 40));
  const bool is_class =
      *as_number >= 0 && *as_number < kMostClasses && *as_number == std::floor(*as_number);
  if (frozen_) {
    if (whole_ && (!is_class || *as_number > largest_)) {
      return fmt::format("the label is {}, and the training data's classes are 0 to {}", text,
                         largest_);
    }
    return {};
  }
  whole_ = whole_ && is_class;
  largest_ = std::max(largest_, *as_number);
  return {};
}

float Labels::value(std::string_view text) const {
  if (!names_used_) return static_cast<float>(number(text).value_or(-1));
  const auto found = std::find(names_.begin(), names_.end(), text);
  return found == names_.end() ? -1.0F : static_cast<float>(found - names_.begin());
}

std::uint32_t Labels::classes() const {
  if (names_used_) return static_cast<std::uint32_t>(std::max<std::size_t>(names_.size(), 2));
  return whole_ ? std::max(static_cast<std::uint32_t>(largest_) + 1, 2U) : 1;
}

}  // namespace antdt::data
