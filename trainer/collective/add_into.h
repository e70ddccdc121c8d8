// The addition of all-reduces. Files that use it are compiled with -O3, which vectorises it.
#pragma once

#include <cstddef>

namespace antdt::trainer {

template <class T>
void add_into(T* __restrict sum, const T* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

}  // namespace antdt::trainer
