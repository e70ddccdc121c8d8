// The model of a simulated job with parameter servers: a table with three rows for each record,
// which count how often it was trained, and a table that stands for the centre of the workers'
// replicas. Its rows count the exchanges (shadow-easgd), or follow the mean of the replicas, each
// of which is one number (shadow-ma, shadow-bmuf).
#pragma once

#include <cstdint>
#include <vector>

#include "core/sync_strategy.h"
#include "core/wire/servers/ps_messages.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"

namespace antdt::sim {

inline constexpr std::uint64_t kRowsOfRecord = 3;
// The keys of the rows of these records, rising.
[[nodiscard]] std::vector<std::uint64_t> keys_of(std::vector<Record> records);
// How often each record is in these rows; kTorn if its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
inline constexpr std::uint32_t kCentreTable = 1;
[[nodiscard]] const std::vector<std::uint64_t>& centre_keys();
// Model::exchanges if the centre's rows differ.
inline constexpr std::uint64_t kTornCentre = ~std::uint64_t{0};
inline constexpr double kEta = 0.25;  // under shadow-bmuf
[[nodiscard]] constexpr bool has_mean(SyncStrategy sync) {
  return sync == SyncStrategy::kShadowMa || sync == SyncStrategy::kShadowBmuf;
}
[[nodiscard]] wire::PsOpen tally_tables(SyncStrategy sync);
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);
// The lowest and the highest count among the rows of each record; kTorn for all records if slices
// are missing.
struct RowTally {
  std::vector<std::uint8_t> least, most;
};
[[nodiscard]] RowTally row_tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
