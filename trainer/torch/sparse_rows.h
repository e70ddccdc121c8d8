// The rows of an embedding table that a step touches, and their sums over all members.
//
// A batch touches few rows of a large table: its gradient is these rows, and only they are sent and
// updated. The gradient has memory of the table's size, zero outside the rows, so that look-ups add
// into it as into any other.
//
// One step: touch for each micro-batch before its backward pass, reduce, (update the rows), forget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

class SparseRows {
 public:
  // `gradient` is rows x width floats and must outlive this object.
  SparseRows(std::span<float> gradient, std::size_t width);

  // Each id is the number of a row.
  void touch(std::span<const std::int64_t> ids);
  // Afterwards the rows are those that any member touched, and their gradient is the sum over the
  // members in the order of their ranks: the same bits on each. Each member sends its rows once
  // around the ring. Errors are the collective's; kCorrupt names a member that sent an invalid row.
  [[nodiscard]] Status reduce(Collective& collective);
  // Each row once, unordered.
  [[nodiscard]] std::span<const std::uint64_t> rows() const { return rows_; }
  [[nodiscard]] std::size_t width() const { return width_; }
  // No row is touched any more. The gradient, which the optimizer has cleared, stays allocated.
  void forget();

 private:
  void insert(std::uint64_t row);
  [[nodiscard]] float* gradient_of(std::uint64_t row) { return gradient_.data() + row * width_; }
  // Size of `rows` rows: their numbers, then their gradients.
  [[nodiscard]] std::size_t bytes_of(std::size_t rows) const {
    return rows * (sizeof(std::uint64_t) + width_ * sizeof(float));
  }
  void write_own(std::byte* to) const;
  [[nodiscard]] Status add(const std::byte* from, std::size_t rows, std::uint32_t rank);

  std::span<float> gradient_;
  std::size_t width_;
  std::size_t count_;                   // number of the table's rows
  std::vector<std::uint64_t> rows_;     // touched
  std::vector<std::uint64_t> touched_;  // the same as one bit for each row of the table
  std::vector<std::byte> gathered_;     // only grows, so that its registration stays valid
};

}  // namespace antdt::trainer
