// How much of a file is written before the next sync, for whoever shows progress by what is on
// the disk: about half a second's worth, however fast the disk is.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/clock.h"

namespace antdt {

class SyncPace {
 public:
  static constexpr std::size_t kLeast = std::size_t{64} << 10;
  static constexpr std::size_t kMost = std::size_t{32} << 20;

  [[nodiscard]] std::size_t part() const { return part_; }
  // Writing and syncing a part took so long.
  void took(Duration duration) {
    if (duration < std::chrono::milliseconds(250)) part_ = std::min(part_ * 2, kMost);
    if (duration > std::chrono::milliseconds(750)) part_ = std::max(part_ / 2, kLeast);
  }

 private:
  std::size_t part_ = std::size_t{1} << 20;
};

}  // namespace antdt
