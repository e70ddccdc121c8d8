// Runs of rows among one bit for each row of a table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace antdt::trainer {

// Calls f(first, count) for runs of rows, in their order, that together have all rows whose bit is
// set. Two rows with at most `gap` others between them are in the same run.
template <class F>
void for_each_run_of(std::span<const std::uint64_t> bits_of_rows, std::uint64_t gap, F f) {
  std::uint64_t first = 0, end = 0;  // of the run that is not yet over
  for (std::size_t word = 0; word < bits_of_rows.size(); ++word) {
    for (std::uint64_t bits = bits_of_rows[word]; bits != 0; bits &= bits - 1) {
      const std::uint64_t row = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      if (end == 0 || row > end + gap) {
        if (end > first) f(first, end - first);
        first = row;
      }
      end = row + 1;
    }
  }
  if (end > first) f(first, end - first);
}

}  // namespace antdt::trainer
