// Who sends what to whom in which round, where rounds are to be few. Pure.
//
// A round costs what a message needs on its way, however short it is: two processes are
// woken. Around a ring a sum of n members takes 2 (n - 1) rounds; here it takes log2 n:
//
// - a sum by recursive doubling: pairs of members at distance 1, then 2, 4, ... exchange
//   what they have summed so far. Both add the same two values, so all have the same bits;
// - gathering as Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
//   all-to-all communications in multiport message-passing systems", IEEE TPDS 8 (1997):
//   for any number of members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace antdt::trainer {

// The ranks that `rank` of `size` exchange messages with, in ascending order: those at
// distances of a power of two below `size`, on both sides of the circle.
[[nodiscard]] std::vector<std::uint32_t> peers_of(std::uint32_t rank, std::uint32_t size);

// Blocks of consecutive ranks, counted on from `first` around the circle.
struct Blocks {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const Blocks&) const = default;
};

struct GatherRound {
  std::uint32_t to = 0;
  std::uint32_t from = 0;
  Blocks sent;
  Blocks received;
};
// After them every member has every block.
[[nodiscard]] std::vector<GatherRound> gather_rounds(std::uint32_t rank, std::uint32_t size);

// A sum by recursive doubling. Members past the largest power of two give their values to
// `folded` before the rounds, and get the sum from it afterwards.
struct DoublingPlan {
  bool folds = false;                   // this member is one of those past: no rounds
  std::optional<std::uint32_t> folded;  // whom it gives them to, or gets them from
  std::vector<std::uint32_t> partners;  // of each round
};
[[nodiscard]] DoublingPlan doubling_plan(std::uint32_t rank, std::uint32_t size);

// Whether a sum of so many bytes is sooner done by doubling than around the ring.
[[nodiscard]] bool doubling_is_quicker(std::uint32_t size, std::size_t bytes);

}  // namespace antdt::trainer
