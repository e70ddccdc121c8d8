// What the members of one generation do together with their tensors.
//
// One object is one membership: every member calls the same operations with
// the same sizes in the same order. After any error the object is dead: every
// further call fails at once, and a new generation makes a new one. Except for
// abort(), one thread at a time uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"

namespace antdt::trainer {

class Collective {
 public:
  virtual ~Collective() = default;

  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;

  // Every element becomes the sum of that element over all members, the same
  // bits on each. kAborted after abort(); kIo when a member is gone; kCorrupt when one runs other
  // operations.
  [[nodiscard]] virtual Status allreduce_sum(std::span<float> values) = 0;
  [[nodiscard]] virtual Status allreduce_sum(std::span<double> values) = 0;

  // `all` (size() times the bytes of `mine`) receives every member's bytes, by rank.
  [[nodiscard]] virtual Status allgather(std::span<const std::byte> mine,
                                         std::span<std::byte> all) = 0;
  // The same with parts of unlike sizes: `sizes` are their bytes by rank, alike on
  // all members. They lie in `all` one after another, and this member's is there
  // already. `all` may be longer; the same memory again is cheaper than other.
  [[nodiscard]] virtual Status allgather_parts(std::span<const std::size_t> sizes,
                                               std::span<std::byte> all) = 0;

  // Bytes along the ring, from a member to the rank after it: send_right blocks until they
  // are on their way, receive_left until as many have come. Sizes are agreed beforehand.
  // Errors as above. Not for size 1.
  [[nodiscard]] virtual Status send_right(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status receive_left(std::span<std::byte> bytes) = 0;

  // All members at the same moment, which they agreed on: how long a message to the rank
  // after this one and its answer are on the way, whatever the others do meanwhile.
  // Nothing where the ring has no third link to compare with. Errors as above.
  [[nodiscard]] virtual Result<std::optional<Duration>> measure_hop() { return std::nullopt; }

  // Ends a call in progress and every later one with kAborted, at once and
  // whatever the other members do. From any thread, any number of times.
  virtual void abort() = 0;
};

// A member that listens for the others, before they are connected. Used once.
//
// Both ends of a connection prove to each other that they know the generation's secret before
// anything else goes over it (handshake.h), so that neither a member of another generation nor a
// stranger ever contributes, or receives anything.
class CollectiveBuilder {
 public:
  virtual ~CollectiveBuilder() = default;

  // Where the others find this member; empty for size 1.
  [[nodiscard]] virtual std::string address() const = 0;

  // `addresses`: everybody's, by rank. Blocks until those whom this member exchanges
  // messages with have connected. kRefused when one is no member or has another rank; kIo when one
  // cannot be reached; kAborted after abort().
  [[nodiscard]] virtual Result<std::unique_ptr<Collective>> connect(
      std::span<const std::string> addresses, const GroupKey& key) = 0;

  // Ends a connect() in progress, from any thread.
  virtual void abort() = 0;
};

// How a member of a new generation starts: (rank, size) -> builder.
using CollectiveFactory =
    std::function<Result<std::unique_ptr<CollectiveBuilder>>(std::uint32_t, std::uint32_t)>;

}  // namespace antdt::trainer
