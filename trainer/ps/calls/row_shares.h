// Which rows of a batch each server has, and the batch's rows out of what servers answer. Keys keep
// their order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::ps {

// Positions of the keys that a server holds, rising; by server.
using Split = std::vector<std::vector<std::size_t>>;
[[nodiscard]] Split split_keys(const std::vector<std::uint64_t>& keys, std::size_t servers);

// By server: its share of these rows. `widths`: floats in a row, by table. kUsage: rows that these
// tables cannot have.
[[nodiscard]] Result<std::vector<std::vector<wire::PsRows>>> shares_of(
    const std::vector<TableGradient>& tables, const std::vector<std::uint32_t>& widths,
    std::size_t servers);

// Rows of one table that were asked for.
struct PulledTable {
  std::uint32_t table = 0;
  std::size_t rows = 0;
  Split parts;
};
// The rows of the table at `at` of what was asked, from each server's answer. kCorrupt: a server
// answered another number of floats.
[[nodiscard]] Status join_rows(const PulledTable& table, std::size_t at,
                               const std::vector<wire::PsPulled>& replies,
                               const std::vector<std::uint32_t>& widths,
                               std::vector<float>& values);

}  // namespace antdt::ps
