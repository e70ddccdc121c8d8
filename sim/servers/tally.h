// The model of a simulated job with parameter servers: a table that counts, in three rows for each
// record, how often it was trained.
#pragma once

#include <cstdint>
#include <vector>

#include "core/wire/ps_messages.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"

namespace antdt::sim {

inline constexpr std::uint64_t kRowsOfRecord = 3;
// How often each record is in these rows; kTorn where its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
[[nodiscard]] wire::PsOpen tally_tables();
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);
// The same row by row: the one with the fewest and the one with the most; kTorn in all where
// slices are missing.
struct RowTally {
  std::vector<std::uint8_t> least, most;
};
[[nodiscard]] RowTally row_tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
