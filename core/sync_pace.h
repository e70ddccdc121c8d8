// How many bytes of a file to write before the next sync, if progress is measured by what is on the
// disk: about as much as the disk writes in half a second.
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
  // Reports how long writing and syncing a part took.
  void took(Duration duration) {
    if (duration < std::chrono::milliseconds(250)) part_ = std::min(part_ * 2, kMost);
    if (duration > std::chrono::milliseconds(750)) part_ = std::max(part_ / 2, kLeast);
  }

 private:
  std::size_t part_ = std::size_t{1} << 20;
};

}  // namespace antdt
