// Which member sends what to which in which round, if the number of rounds is to be small. Pure.
//
// A round costs the latency of a message, however short it is, because two processes are woken.
// Around a ring, a sum of n members takes 2 (n - 1) rounds; here it takes log2 n:
//
// - sums use recursive doubling: pairs of members at distance 1, then 2, 4, ... exchange what they
//   have summed so far. Both add the same two values, so all have the same bits;
// - gathering follows Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
//   communications in multiport message-passing systems", IEEE TPDS 8 (1997), for any number of
//   members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace antdt::trainer {

// The ranks with which `rank` of `size` exchanges messages, in ascending order: those at distances
// of a power of two below `size`, on both sides of the circle.
[[nodiscard]] std::vector<std::uint32_t> peers_of(std::uint32_t rank, std::uint32_t size);

// Blocks of consecutive ranks, from `first` on around the circle.
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
// After these rounds every member has every block.
[[nodiscard]] std::vector<GatherRound> gather_rounds(std::uint32_t rank, std::uint32_t size);

// A sum by recursive doubling. Members past the largest power of two give their values to `folded`
// before the rounds, and get the sum from it afterwards.
struct DoublingPlan {
  bool folds = false;  // this is a member past the power of two, which takes part in no rounds
  // the partner for giving values before, or the sum afterwards
  std::optional<std::uint32_t> folded;
  std::vector<std::uint32_t> partners;  // the partner of each round
};
[[nodiscard]] DoublingPlan doubling_plan(std::uint32_t rank, std::uint32_t size);

// Whether a sum of so many bytes is faster by doubling than around the ring.
[[nodiscard]] bool doubling_is_quicker(std::uint32_t size, std::size_t bytes);

}  // namespace antdt::trainer
