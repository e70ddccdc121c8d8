// The rows of an embedding table that a step touches, and their sums over all members.
//
// A batch touches few rows of a large table: its gradient is these rows, and only they are sent.
// The gradient has memory of the table's size, zero outside the rows, so that look-ups add into it
// as into any other, and so that it can also be summed as a whole.
//
// One step: touch for each micro-batch before its backward pass, count as soon as all are touched,
// reduce, (update), forget. Members exchange how many rows they have while they still compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/torch/rows/bit_runs.h"

namespace antdt::trainer {

// How members sum the gradient of an embedding table.
enum class TableSum {
  kRows,     // the rows that a batch touched
  kQuicker,  // in each step these rows or the whole table, whichever takes less
};

// A member whose table is in a device's memory sums it as a whole, and has so many rows for the
// others.
inline constexpr std::uint64_t kWholeTable = std::numeric_limits<std::uint64_t>::max();
// What it does when the others call SparseRows::count.
[[nodiscard]] Status count_as_whole(Collective& collective);

// Whether members that touched `counts` rows of a table of `rows` x `width` floats, by rank, sum
// them in less time than the whole table. False if one has kWholeTable. All members have the same
// counts, so they decide alike.
[[nodiscard]] bool rows_are_quicker(std::span<const std::uint64_t> counts, std::size_t rows,
                                    std::size_t width);

class SparseRows {
 public:
  // `gradient` is rows x width floats and must outlive this object.
  SparseRows(std::span<float> gradient, std::size_t width, TableSum how);

  // Each id is the number of a row.
  void touch(std::span<const std::int64_t> ids);
  // How many rows each member touched. Errors are the collective's.
  [[nodiscard]] Status count(Collective& collective);
  // After count(). Afterwards the gradient is the sum over the members, with the same bits on each.
  // Errors are the collective's; kCorrupt names a member that sent an invalid row.
  //
  // Summed as rows: the rows are those that any member touched, each is summed in the order of
  // ranks, and each member sends its rows once around the ring. Summed as a whole: is_whole().
  [[nodiscard]] Status reduce(Collective& collective);
  // Whether any row may have a gradient since reduce(), and not rows() alone.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  // Calls f(first, count) for the touched rows, in their order; adjacent rows are one call.
  template <class F>
  void for_each_run(F f) const {
    for_each_run_of(touched_, 0, f);
  }
  [[nodiscard]] std::size_t width() const { return width_; }
  // No row is touched any more. The gradient, which the optimizer has cleared, stays allocated.
  void forget();

 private:
  void insert(std::uint64_t row);
  [[nodiscard]] Status sum_rows(Collective& collective);
  [[nodiscard]] float* gradient_of(std::uint64_t row) { return gradient_.data() + row * width_; }
  // Size of `rows` rows: their numbers, then their gradients.
  [[nodiscard]] std::size_t bytes_of(std::size_t rows) const {
    return rows * (sizeof(std::uint64_t) + width_ * sizeof(float));
  }
  void write_own(std::byte* to) const;
  [[nodiscard]] Status add(const std::byte* from, std::size_t rows, std::uint32_t rank);

  std::span<float> gradient_;
  std::size_t width_;
  TableSum how_;
  bool is_whole_ = false;
  std::size_t count_;                   // number of the table's rows
  std::vector<std::uint64_t> rows_;     // touched
  std::vector<std::uint64_t> touched_;  // the same as one bit for each row of the table
  std::vector<std::uint64_t> counts_;   // of rows that members touched, by rank
  std::vector<std::byte> gathered_;     // only grows, so that its registration stays valid
};

}  // namespace antdt::trainer
