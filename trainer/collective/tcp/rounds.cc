#include "trainer/collective/tcp/rounds.h"

#include <algorithm>
#include <bit>

namespace antdt::trainer {
namespace {

// What a tcp connection transfers during the latency of a message: some 30 us at 1 GB/s.
constexpr double kBytesOfARound = 32.0 * 1024;

}  // namespace

std::vector<std::uint32_t> peers_of(std::uint32_t rank, std::uint32_t size) {
  std::vector<std::uint32_t> peers;
  for (std::uint64_t distance = 1; distance < size; distance *= 2) {
    peers.push_back(static_cast<std::uint32_t>((rank + distance) % size));
    peers.push_back(static_cast<std::uint32_t>((rank + size - distance) % size));
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

// Before the round with distance d, a member has the blocks of d ranks from its own on. These are
// the blocks that the member at distance d before it needs next.
std::vector<GatherRound> gather_rounds(std::uint32_t rank, std::uint32_t size) {
  std::vector<GatherRound> rounds;
  for (std::uint64_t distance = 1; distance < size; distance *= 2) {
    const auto d = static_cast<std::uint32_t>(distance);
    const std::uint32_t count = std::min(d, size - d);
    const auto from = static_cast<std::uint32_t>((rank + distance) % size);
    rounds.push_back({(rank + size - d) % size, from, {rank, count}, {from, count}});
  }
  return rounds;
}

DoublingPlan doubling_plan(std::uint32_t rank, std::uint32_t size) {
  const std::uint32_t power = std::bit_floor(size);
  DoublingPlan plan;
  plan.folds = rank >= power;
  if (plan.folds) {
    plan.folded = rank - power;
    return plan;
  }
  if (size - power > rank) plan.folded = rank + power;
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    plan.partners.push_back(rank ^ distance);
  }
  return plan;
}

bool doubling_is_quicker(std::uint32_t size, std::size_t bytes) {
  if (size < 2) return true;
  const double n = size;
  const bool folds = !std::has_single_bit(size);
  const double rounds = std::bit_width(size) - 1 + (folds ? 2 : 0);
  const double ring_rounds = 2 * (n - 1);
  const auto sent = static_cast<double>(bytes);  // in each round; the ring sends parts of it
  return rounds * (kBytesOfARound + sent) <= ring_rounds * (kBytesOfARound + sent / n);
}

}  // namespace antdt::trainer
