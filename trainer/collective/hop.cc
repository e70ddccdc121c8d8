#include "trainer/collective/hop.h"

#include <chrono>
#include <vector>

namespace antdt::trainer {
namespace {

// Size of the message that measures a hop: large enough to show the link's bandwidth, small enough
// to arrive soon.
constexpr std::size_t kHopBytes = 16 * 1024;

// Two rounds: once the first is answered, the neighbour is ready, so the second measures the link
// alone.
Result<Duration> ask_right(Neighbours& neighbours) {
  std::vector<std::byte> all(kHopBytes);
  const auto one = std::span(all).first(1);
  ANTDT_RETURN_IF_ERROR(neighbours.send_to(Side::kRight, one));
  ANTDT_RETURN_IF_ERROR(neighbours.receive_from(Side::kRight, one));
  const auto began = std::chrono::steady_clock::now();
  ANTDT_RETURN_IF_ERROR(neighbours.send_to(Side::kRight, all));
  ANTDT_RETURN_IF_ERROR(neighbours.receive_from(Side::kRight, all));
  return std::chrono::steady_clock::now() - began;
}

Status answer_left(Neighbours& neighbours) {
  std::vector<std::byte> all(kHopBytes);
  for (const std::size_t bytes : {std::size_t{1}, kHopBytes}) {
    const auto message = std::span(all).first(bytes);
    ANTDT_RETURN_IF_ERROR(neighbours.receive_from(Side::kLeft, message));
    ANTDT_RETURN_IF_ERROR(neighbours.send_to(Side::kLeft, message));
  }
  return {};
}

}  // namespace

// Pairs take turns, so that none disturbs another: no two pairs of a turn have a member in common.
// In a ring of an odd number of members, the last pair has a turn of its own.
Result<std::optional<Duration>> measure_hop(std::uint32_t rank, std::uint32_t size,
                                            Neighbours& neighbours) {
  if (size < 3) return std::nullopt;
  const auto turn_of = [&](std::uint32_t of) {
    return size % 2 == 1 && of == size - 1 ? 2U : of % 2;
  };
  Duration took{};
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    if (turn_of(rank) == turn) {
      ANTDT_TRY(took, ask_right(neighbours));
    } else if (turn_of((rank + size - 1) % size) == turn) {
      ANTDT_RETURN_IF_ERROR(answer_left(neighbours));
    }
  }
  return took;
}

}  // namespace antdt::trainer
