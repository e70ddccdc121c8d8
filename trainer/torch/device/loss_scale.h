// The factor of the loss in float16, whose small gradients would be zeros otherwise. Pure.
//
// Each member divides its gradient by its own factor before the members' sum, which is in float32,
// so members need not agree on one. A micro-batch whose gradient overflows is computed again with
// half the factor: no record is left out of a step, unlike where the whole step is dropped.
#pragma once

#include <algorithm>
#include <cstdint>

namespace antdt::trainer {

class LossScale {
 public:
  static constexpr double kFirst = 65536, kMost = 16777216, kLeast = 1;
  static constexpr std::uint32_t kGrowsAfter = 2000;  // micro-batches without an overflow

  [[nodiscard]] double value() const { return value_; }
  // The ratio of the new factor to the one before: what was added up must be multiplied by it.
  [[nodiscard]] double fitted() {
    if (++clean_ < kGrowsAfter || value_ >= kMost) return 1;
    clean_ = 0;
    value_ *= 2;
    return 2;
  }
  // False if no smaller factor can help. Else the factor is half of what it was.
  [[nodiscard]] bool overflowed() {
    clean_ = 0;
    if (value_ <= kLeast) return false;
    value_ /= 2;
    return true;
  }

 private:
  double value_ = kFirst;
  std::uint32_t clean_ = 0;
};

}  // namespace antdt::trainer
