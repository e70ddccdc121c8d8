// The model of a simulated job with parameter servers: a table with three rows for each record,
// which count how often it was trained.
#pragma once

#include <cstdint>
#include <vector>

#include "core/wire/ps_messages.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"

namespace antdt::sim {

inline constexpr std::uint64_t kRowsOfRecord = 3;
// How often each record is in these rows; kTorn if its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
[[nodiscard]] wire::PsOpen tally_tables();
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);
// The lowest and the highest count among the rows of each record; kTorn for all records if slices
// are missing.
struct RowTally {
  std::vector<std::uint8_t> least, most;
};
[[nodiscard]] RowTally row_tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
