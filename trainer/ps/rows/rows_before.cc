#include "trainer/ps/rows/rows_before.h"

#include <algorithm>
#include <iterator>

namespace antdt::ps {

void RowsBefore::remember(Store& store, std::uint32_t table, std::span<const std::uint64_t> keys) {
  Table& before = tables_.emplace_back();
  before.table = table;
  before.keys.assign(keys.begin(), keys.end());
  store.for_each_row(table, keys,
                     [&](std::size_t, std::span<float> values, std::span<float> state) {
                       std::ranges::copy(values, std::back_inserter(before.floats));
                       std::ranges::copy(state, std::back_inserter(before.floats));
                     });
}

void RowsBefore::take_back(Store& store) {
  for (const Table& before : tables_) {
    store.for_each_row(before.table, before.keys,
                       [&](std::size_t i, std::span<float> values, std::span<float> state) {
                         const std::size_t floats = values.size() + state.size();
                         const auto row = std::span(before.floats).subspan(i * floats, floats);
                         std::ranges::copy(row.first(values.size()), values.begin());
                         std::ranges::copy(row.subspan(values.size()), state.begin());
                       });
  }
  forget();
}

}  // namespace antdt::ps
