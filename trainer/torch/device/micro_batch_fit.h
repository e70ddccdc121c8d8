// Which micro-batches fit a device's memory, as it was found out. Pure.
//
// A size is tried as it is ordered. If it does not fit, half of it is tried, and what is ordered
// later is cut into pieces of at most that. A size that has fitted once is proven, and so are
// smaller ones.
#pragma once

#include <algorithm>
#include <cstddef>

namespace antdt::trainer {

class MicroBatchFit {
 public:
  // How many of `left` records are to be computed next.
  [[nodiscard]] std::size_t next(std::size_t left) const {
    return bound_ == 0 ? left : std::min(left, bound_);
  }
  [[nodiscard]] bool proven(std::size_t records) const { return records <= proven_; }
  // The most that can be computed at once; 0: every size that was tried has fitted.
  [[nodiscard]] std::size_t bound() const { return bound_; }

  void fitted(std::size_t records) { proven_ = std::max(proven_, records); }
  // That many did not fit. False if there is nothing smaller.
  [[nodiscard]] bool too_large(std::size_t records) {
    if (records <= 1) return false;
    bound_ = records / 2;
    proven_ = std::min(proven_, bound_);
    return true;
  }

 private:
  std::size_t proven_ = 0;
  std::size_t bound_ = 0;
};

}  // namespace antdt::trainer
