// Splits the rows of a batch by server, and joins the rows that the servers answer. Keys keep their
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "core/wire/packet.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::ps {

// For each server, the positions of the keys that it holds, rising.
using Split = std::vector<std::vector<std::size_t>>;
[[nodiscard]] Split split_keys(const std::vector<std::uint64_t>& keys, std::size_t servers);

// Each server's share of these rows. `widths`: floats per row, by table. kUsage: rows that these
// tables cannot have. kTooLarge: a share that does not fit a message.
[[nodiscard]] Result<std::vector<std::vector<wire::PsRows>>> shares_of(
    const std::vector<TableGradient>& tables, const std::vector<std::uint32_t>& widths,
    std::size_t servers);

// The most bytes of rows in one message: some of a frame is for what describes them, also where a
// backup gets the message in another one.
inline constexpr std::size_t kMostRowBytes = wire::kMostFrameBytes - (std::size_t{1} << 20);

// kTooLarge: a server's share is larger than a message may be.
[[nodiscard]] Status check_sizes(const std::vector<std::vector<wire::PsRows>>& shares);
// The same for the rows that servers would answer to these keys.
[[nodiscard]] Status check_answers(const std::vector<std::vector<wire::PsRows>>& keys,
                                   const std::vector<std::uint32_t>& widths);
// The number of servers from which on each one's share of these rows fits a message; 0: none.
[[nodiscard]] std::uint32_t fewest_servers(const std::vector<TableGradient>& rows);

// Rows of one table that were requested.
struct PulledTable {
  std::uint32_t table = 0;
  std::size_t rows = 0;
  Split parts;
};
// Joins the rows of the table at index `at` of the request, from each server's answer. kRefused: a
// server answered another number of floats.
[[nodiscard]] Status join_rows(const PulledTable& table, std::size_t at,
                               const std::vector<wire::PsPulled>& replies,
                               const std::vector<std::uint32_t>& widths,
                               std::vector<float>& values);

}  // namespace antdt::ps
