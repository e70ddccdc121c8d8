// A fault injection that makes messages take longer.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/clock.h"

namespace antdt::trainer {

// Blocks for `delay`, or until `aborted` is set, which is noticed within 20 ms.
inline void hold_back(Duration delay, const std::atomic<bool>& aborted) {
  constexpr Duration kSlice = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + delay;
  while (!aborted && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_until(std::min(end, std::chrono::steady_clock::now() + kSlice));
  }
}

}  // namespace antdt::trainer
