// The hops of the ring of all ranks: bytes to the neighbours on both sides, and how long they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::trainer {

enum class Side : std::uint8_t { kRight, kLeft };  // the next rank, the previous rank

// A member's links to its neighbours, whatever carries the bytes.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // Blocks until the bytes are on their way.
  [[nodiscard]] virtual Status send_to(Side side, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status receive_from(Side side, std::span<std::byte> bytes) = 0;
};

// Collective::measure_hop().
[[nodiscard]] Result<std::optional<Duration>> measure_hop(std::uint32_t rank, std::uint32_t size,
                                                          Neighbours& neighbours);

}  // namespace antdt::trainer
