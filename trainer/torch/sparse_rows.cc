#include "trainer/torch/sparse_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace antdt::trainer {

namespace {

// What a byte of rows costs, for one of a whole table. Rows are gathered from and added to places
// all over the table, a whole table is summed in one pass.
constexpr double kCostOfRows = 1.5;

Status gather_counts(Collective& collective, std::uint64_t own, std::vector<std::uint64_t>& all) {
  all.resize(collective.size());
  return collective.allgather(std::as_bytes(std::span(&own, 1)),
                              std::as_writable_bytes(std::span(all)));
}

}  // namespace

Status count_as_whole(Collective& collective) {
  std::vector<std::uint64_t> counts;
  return gather_counts(collective, kWholeTable, counts);
}

bool rows_are_quicker(std::span<const std::uint64_t> counts, std::size_t rows, std::size_t width) {
  if (std::ranges::find(counts, kWholeTable) != counts.end()) return false;
  const auto members = static_cast<double>(counts.size());
  const std::size_t row_bytes = width * sizeof(float);
  // A ring passes each byte of a whole table through each member twice, but for its own part.
  const double whole = 2 * (members - 1) / members * static_cast<double>(rows * row_bytes);
  const auto touched = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  return kCostOfRows * touched * static_cast<double>(sizeof(std::uint64_t) + row_bytes) < whole;
}

SparseRows::SparseRows(std::span<float> gradient, std::size_t width, TableSum how)
    : gradient_(gradient),
      width_(width),
      how_(how),
      count_(gradient.size() / width),
      touched_((count_ + 63) / 64) {}

void SparseRows::insert(std::uint64_t row) {
  const std::uint64_t bit = std::uint64_t{1} << (row % 64);
  std::uint64_t& word = touched_[row / 64];
  if ((word & bit) != 0) return;
  word |= bit;
  rows_.push_back(row);
}

void SparseRows::touch(std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) insert(static_cast<std::uint64_t>(id));
}

void SparseRows::write_own(std::byte* to) const {
  std::memcpy(to, rows_.data(), rows_.size() * sizeof(std::uint64_t));
  to += rows_.size() * sizeof(std::uint64_t);
  const std::size_t bytes = width_ * sizeof(float);
  for (const std::uint64_t row : rows_) {
    std::memcpy(to, gradient_.data() + row * width_, bytes);
    to += bytes;
  }
}

Status SparseRows::add(const std::byte* from, std::size_t rows, std::uint32_t rank) {
  // A part begins at a multiple of 4 bytes, which is enough for its floats and not for its numbers.
  const auto* values = reinterpret_cast<const float*>(from + rows * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < rows; ++i, values += width_) {
    std::uint64_t row = 0;
    std::memcpy(&row, from + i * sizeof row, sizeof row);
    if (row >= count_) {
      return fail(ErrorKind::kCorrupt, "rank {} sent a gradient of row {} of a table of {} rows",
                  rank, row, count_);
    }
    insert(row);
    float* __restrict const sum = gradient_of(row);
    for (std::size_t k = 0; k < width_; ++k) sum[k] += values[k];
  }
  return {};
}

Status SparseRows::count(Collective& collective) {
  return gather_counts(collective, rows_.size(), counts_);
}

Status SparseRows::reduce(Collective& collective) {
  if (collective.size() == 1) return {};
  if (how_ == TableSum::kQuicker && !rows_are_quicker(counts_, count_, width_)) {
    is_whole_ = true;
    return collective.allreduce_sum(gradient_);
  }
  return sum_rows(collective);
}

Status SparseRows::sum_rows(Collective& collective) {
  std::vector<std::size_t> sizes;
  for (std::uint32_t rank = 0; rank < counts_.size(); ++rank) {
    if (counts_[rank] > count_) {
      return fail(ErrorKind::kCorrupt, "rank {} has gradients of {} rows of a table of {}", rank,
                  counts_[rank], count_);
    }
    sizes.push_back(bytes_of(counts_[rank]));
  }
  const std::size_t total = std::reduce(sizes.begin(), sizes.end());
  if (total > gathered_.size()) gathered_.resize(total + total / 4);
  const auto begin_of = [&](std::uint32_t rank) {
    return gathered_.data() +
           std::reduce(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank));
  };
  write_own(begin_of(collective.rank()));
  ANTDT_RETURN_IF_ERROR(collective.allgather_parts(sizes, gathered_));
  // This member's part is added in the order of ranks, like the others'.
  for (const std::uint64_t row : rows_) std::fill_n(gradient_of(row), width_, 0.0F);
  for (std::uint32_t rank = 0; rank < counts_.size(); ++rank) {
    ANTDT_RETURN_IF_ERROR(add(begin_of(rank), counts_[rank], rank));
  }
  return {};
}

void SparseRows::forget() {
  for (const std::uint64_t row : rows_) touched_[row / 64] = 0;
  rows_.clear();
  is_whole_ = false;
}

}  // namespace antdt::trainer
