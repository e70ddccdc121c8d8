// The model of a simulated job with parameter servers: a table with three rows for each record,
// which count how often it was trained, and rows that stand for the centre of the workers'
// replicas, which count the exchanges.
#pragma once

#include <cstdint>
#include <vector>

#include "core/wire/servers/ps_messages.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"

namespace antdt::sim {

inline constexpr std::uint64_t kRowsOfRecord = 3;
// How often each record is in these rows; kTorn if its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
// The keys of the centre's rows, behind those of all records.
[[nodiscard]] std::vector<std::uint64_t> centre_keys();
// Model::exchanges if the centre's rows differ.
inline constexpr std::uint64_t kTornCentre = ~std::uint64_t{0};
[[nodiscard]] wire::PsOpen tally_tables();
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);
// The lowest and the highest count among the rows of each record; kTorn for all records if slices
// are missing.
struct RowTally {
  std::vector<std::uint8_t> least, most;
};
[[nodiscard]] RowTally row_tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
