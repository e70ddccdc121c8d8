#include "trainer/torch/rows/awake_rows.h"

namespace antdt::trainer {

void AwakeRows::wake_where_not_zero(std::span<const float> values) {
  for (std::uint64_t row = 0; row < count_; ++row) {
    if (is_awake(row)) continue;
    const std::span<const float> of_row = values.subspan(row * width_, width_);
    bool zero = true;
    for (const float value : of_row) zero &= value == 0;
    if (!zero) wake(row);
  }
}

}  // namespace antdt::trainer
