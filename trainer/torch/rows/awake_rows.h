// The rows of an embedding table that an update of the whole table can change.
//
// Adam moves every row in every step, by its moments, whether or not the batch has the row. But a
// row whose gradient and moments are all zero does not change by the update, to the last bit. Such
// a row rests: it has not been in any batch yet. In a large table most rows rest for a long time,
// many for ever, and an update goes through the others only. Nothing of this is in a checkpoint:
// which rows rest follows from the moments.
//
// Only for optimizers that say so (kit::Optimizer::rests_at_zero).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/torch/rows/bit_runs.h"

namespace antdt::trainer {

class AwakeRows {
 public:
  // A table of `count` rows of `width` floats, all of which rest.
  AwakeRows(std::size_t count, std::size_t width)
      : count_(count), width_(width), awake_((count + 63) / 64) {}

  // One row, below the number of rows.
  void wake(std::uint64_t row) { awake_[row / 64] |= std::uint64_t{1} << (row % 64); }
  // The rows of which a float in `values`, the table's gradient or moments, is not zero.
  void wake_where_not_zero(std::span<const float> values);
  void rest_all() { std::ranges::fill(awake_, 0); }

  [[nodiscard]] bool is_awake(std::uint64_t row) const {
    return (awake_[row / 64] >> (row % 64) & 1U) != 0;
  }
  // Calls f(first, count) for runs of rows, in their order, that together have all that are awake.
  // Between two of them a few that rest may be in the same run.
  template <class F>
  void for_each_run(F f) const {
    for_each_run_of(awake_, kJoined, f);
  }

 private:
  static constexpr std::uint64_t kJoined = 4;  // a gap of so many rows costs less than another call

  std::size_t count_, width_;
  std::vector<std::uint64_t> awake_;  // one bit for each row
};

}  // namespace antdt::trainer
