// Which updates of elements are significant. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace antdt::sync::gaia {

// |change / value| > threshold, and any change of a value that is 0. True for a change that is not
// a finite number, which therefore does not stay unseen.
[[nodiscard]] inline bool is_significant(float value, float change, float threshold) {
  const float bound = std::min(threshold * std::fabs(value), std::numeric_limits<float>::max());
  return !(std::fabs(change) <= bound);
}

// How many of these elements are significant, where a change is the difference between a value and
// its known one. One pass in the widest vectors of the processor.
[[nodiscard]] std::uint32_t count_significant(const float* values, const float* known,
                                              std::size_t count, float threshold);

}  // namespace antdt::sync::gaia
