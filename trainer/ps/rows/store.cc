#include "trainer/ps/rows/store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/check.h"

namespace antdt::ps {
namespace {

// In (0, 1), without the end points.
float unit(std::uint64_t bits) { return (static_cast<float>(bits >> 40) + 0.5F) * 0x1p-24F; }

float drawn(const TableSpec& spec, std::uint64_t bits) {
  const float u = unit(bits);
  if (spec.init == TableSpec::Init::kUniform) return (2 * u - 1) * spec.init_scale;
  // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
  const float v = unit(mix64(bits));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi_v<float> * v) *
         spec.init_scale;
}

}  // namespace

Store::Store(std::vector<TableSpec> tables, std::uint64_t seed)
    : tables_(std::move(tables)), seed_(seed), slices_(kSlices) {
  for (auto& slice : slices_) {
    for (const TableSpec& spec : tables_) {
      slice.emplace_back(spec.width, spec.rule.state(spec.width));
    }
  }
}

std::uint64_t Store::rows() const {
  std::uint64_t sum = 0;
  for (const auto& slice : slices_) {
    for (const RowTable& table : slice) sum += table.rows();
  }
  return sum;
}

std::uint64_t Store::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& slice : slices_) {
    for (const RowTable& table : slice) sum += table.bytes();
  }
  return sum;
}

void Store::begin_row(std::uint32_t table, std::uint64_t key, std::span<float> values) const {
  const TableSpec& spec = tables_[table];
  if (spec.init == TableSpec::Init::kZero) return;
  const std::uint64_t row_seed = combine_seed(combine_seed(seed_, table), key);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn(spec, mix64(row_seed + i));
}

// Works on groups of keys in three passes: the index entry, the row's position, the row. Each pass
// prefetches the memory that the next one needs.
template <class F>
void Store::for_rows(std::uint32_t table, std::span<const std::uint64_t> keys, F visit) {
  ANTDT_CHECK(table < tables_.size(), "table {} of {}", table, tables_.size());
  constexpr std::size_t kGroup = 32;
  std::array<std::uint64_t, kGroup> hashes{};
  std::array<RowTable*, kGroup> of{};
  for (std::size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const auto group = keys.subspan(begin, std::min(kGroup, keys.size() - begin));
    for (std::size_t i = 0; i < group.size(); ++i) {
      hashes[i] = RowTable::hash(group[i]);
      of[i] = &slices_[slice_of(group[i])][table];
      of[i]->prefetch_index(hashes[i]);
    }
    for (std::size_t i = 0; i < group.size(); ++i) of[i]->prefetch_row(hashes[i]);
    for (std::size_t i = 0; i < group.size(); ++i) {
      visit(begin + i, *of[i], hashes[i], of[i]->find(group[i], hashes[i]));
    }
  }
}

void Store::read(std::uint32_t table, std::span<const std::uint64_t> keys, char* out) {
  const std::size_t bytes = tables_.at(table).width * sizeof(float);
  for_rows(table, keys, [&](std::size_t i, RowTable& rows, std::uint64_t h, std::uint32_t row) {
    if (row == RowTable::kNone) {
      row = rows.add(keys[i], h);
      begin_row(table, keys[i], rows.values(row));
    }
    std::memcpy(out + i * bytes, rows.values(row).data(), bytes);
  });
}

void Store::put_new(std::uint32_t table, std::span<const std::uint64_t> keys,
                    std::span<const float> values) {
  const std::size_t width = tables_.at(table).width;
  for_rows(table, keys, [&](std::size_t i, RowTable& rows, std::uint64_t h, std::uint32_t row) {
    if (row != RowTable::kNone) return;
    std::ranges::copy(values.subspan(i * width, width), rows.values(rows.add(keys[i], h)).begin());
  });
}

void Store::update(std::uint32_t table, std::span<const std::uint64_t> keys,
                   std::span<const float> gradients, float scale) {
  const std::size_t width = tables_.at(table).width;
  UpdateRule rule = tables_[table].rule;
  if (rule.follows_rate()) rule.learning_rate *= rate_;
  for_rows(table, keys, [&](std::size_t i, RowTable& rows, std::uint64_t h, std::uint32_t row) {
    if (row == RowTable::kNone) {
      row = rows.add(keys[i], h);
      begin_row(table, keys[i], rows.values(row));
    }
    rule.apply(rows.values(row), rows.state(row), gradients.subspan(i * width, width), scale);
  });
}

void Store::for_each_row(std::uint32_t table, std::span<const std::uint64_t> keys,
                         const Visit& visit) {
  for_rows(table, keys, [&](std::size_t i, RowTable& rows, std::uint64_t h, std::uint32_t row) {
    if (row == RowTable::kNone) {
      row = rows.add(keys[i], h);
      begin_row(table, keys[i], rows.values(row));
    }
    visit(i, rows.values(row), rows.state(row));
  });
}

}  // namespace antdt::ps
