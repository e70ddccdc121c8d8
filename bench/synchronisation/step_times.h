// How long steps take over links of different speeds, in virtual time: a ring of all members in
// each step, or rings of the groups of DS-Sync.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace antdt::bench::synchronisation {

// What is slow.
struct Slow {
  // The link between these two ranks, in both directions.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> link = {};
  // Every link of this rank.
  std::optional<std::uint32_t> host = {};
  double factor = 10;    // so many times as long do bytes take there
  double straggles = 0;  // with this chance a member computes `straggling` times as long in a step
  double straggling = 3;
};

struct Fleet {
  std::uint32_t members = 16;
  double bytes = 100e6;         // of the parameters, and of the gradients
  double bytes_per_s = 1.25e9;  // of a link, in each direction
  double hop_s = 0.2e-3;        // of a message, besides its bytes
  double compute_s = 0.1;       // of a step
  std::uint32_t steps = 600;
  std::uint64_t seed = 1;
  Slow slow = {};
};

// Seconds for each step if the gradients are summed in a ring of all members, in the order of
// ranks, and the slots are gathered.
[[nodiscard]] double all_reduce_s(const Fleet& fleet);

// The same if members mix in the groups of DS-Sync, and conclude a step when they have the slots
// that all have sent `lag` steps before it; 0: in it.
[[nodiscard]] double ds_sync_s(const Fleet& fleet, std::uint32_t lag);

}  // namespace antdt::bench::synchronisation
