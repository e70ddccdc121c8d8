// Long vectors of values that repeat. They are copied and compared whole, because a loop over
// their elements, which is compiled without optimisation here, takes longer under a sanitizer than
// all that the test is about.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace antdt::trainer {

// `count` elements: those of `period`, again and again.
template <class T>
std::vector<T> repeated(const std::vector<T>& period, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(count);
  for (std::size_t at = 0; at < count; at += period.size()) {
    std::memcpy(all.data() + at, period.data(), std::min(period.size(), count - at) * sizeof(T));
  }
  return all;
}

// Whether `got` has the bits of repeated(period, got.size()); if not, where it differs first.
template <class T>
::testing::AssertionResult repeats(std::span<const T> got, const std::vector<T>& period) {
  static_assert(std::is_trivially_copyable_v<T>);
  for (std::size_t at = 0; at < got.size(); at += period.size()) {
    const auto part = got.subspan(at, std::min(period.size(), got.size() - at));
    if (std::memcmp(part.data(), period.data(), part.size_bytes()) == 0) continue;
    std::size_t i = 0;
    while (std::memcmp(&part[i], &period[i], sizeof(T)) == 0) ++i;
    return ::testing::AssertionFailure()
           << "at " << at + i << ": " << ::testing::PrintToString(part[i]) << ", not "
           << ::testing::PrintToString(period[i]);
  }
  return ::testing::AssertionSuccess();
}

}  // namespace antdt::trainer
