// Medians of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace antdt {

// The middle value; the lower one of two, so that of two workers the slow one does not decide what
// is usual. 0 if there is none.
[[nodiscard]] inline double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The middle value; the higher one of two. 0 if there is none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace antdt
