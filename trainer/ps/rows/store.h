// All tables of one server.
//
// The rows of every table are spread over kSlices slices by their key. A slice is the unit that is
// placed on a server, copied to another one and written to a file of a checkpoint. Which slices a
// server has is not decided here.
//
// A row that is read before it was written begins with values drawn from (seed, table, key): the
// same on every server and after every restart. Tables whose first values only the workers know
// (dense parameters) are put first.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/model_slices.h"
#include "core/result.h"
#include "trainer/ps/rows/row_table.h"
#include "trainer/ps/rows/update_rule.h"

namespace antdt::ps {

inline constexpr std::uint32_t kSlices = kModelSlices;

// The same on workers and servers, and in every version, because it decides where a row is.
[[nodiscard]] constexpr std::uint32_t slice_of(std::uint64_t key) {
  // These bits are not used by the index of a table.
  return static_cast<std::uint32_t>(RowTable::hash(key) >> 58) % kSlices;
}

struct TableSpec {
  enum class Init : std::uint8_t { kZero, kUniform, kNormal };
  std::string name;
  std::uint32_t width = 1;
  UpdateRule rule;
  Init init = Init::kZero;
  float init_scale = 0;  // uniform in [-scale, scale), or the standard deviation
  bool operator==(const TableSpec&) const = default;
};

class Store {
 public:
  Store(std::vector<TableSpec> tables, std::uint64_t seed);

  [[nodiscard]] const std::vector<TableSpec>& tables() const { return tables_; }
  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t bytes() const;

  // Writes the values of `keys` (keys.size() * width floats) to `out`; missing rows are made.
  // `table` must be a valid index.
  void read(std::uint32_t table, std::span<const std::uint64_t> keys, char* out);
  // Sets rows that do not exist yet; the others stay as they are.
  void put_new(std::uint32_t table, std::span<const std::uint64_t> keys,
               std::span<const float> values);
  // Scales the tables' learning rates from now on, if they follow it (UpdateRule::follows_rate).
  void set_rate(float rate) { rate_ = rate; }
  // Updates each of these rows once, by its gradient times `scale`.
  void update(std::uint32_t table, std::span<const std::uint64_t> keys,
              std::span<const float> gradients, float scale);
  // Shows each of these rows with what its optimizer keeps; missing rows are made. `visit` may
  // change both.
  using Visit = std::function<void(std::size_t i, std::span<float> values, std::span<float> state)>;
  void for_each_row(std::uint32_t table, std::span<const std::uint64_t> keys, const Visit& visit);

  [[nodiscard]] const RowTable& slice(std::uint32_t slice, std::uint32_t table) const {
    return slices_[slice][table];
  }
  // For slice_image.h, which fills the slice.
  [[nodiscard]] RowTable& slice(std::uint32_t slice, std::uint32_t table) {
    return slices_[slice][table];
  }

 private:
  // Calls visit(i, rows, hash, row) for each key; row is kNone if there is no such row.
  template <class F>
  void for_rows(std::uint32_t table, std::span<const std::uint64_t> keys, F visit);
  void begin_row(std::uint32_t table, std::uint64_t key, std::span<float> values) const;

  std::vector<TableSpec> tables_;
  std::uint64_t seed_;
  float rate_ = 1;
  std::vector<std::vector<RowTable>> slices_;  // [slice][table]
};

}  // namespace antdt::ps
