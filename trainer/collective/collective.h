// The operations that the members of one generation do together with their tensors.
//
// One object is one membership: every member calls the same operations with the same sizes in the
// same order. After any error the object is dead: every further call fails at once, and a new
// generation needs a new object. Except for abort(), one thread at a time uses it.
//
// Some of the members can do operations among themselves (group()), while others do theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/device.h"
#include "trainer/collective/handshake.h"
#include "trainer/collective/link_ledger.h"

namespace antdt::trainer {

class Collective {
 public:
  virtual ~Collective() = default;

  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;

  // Every element becomes the sum of that element over all members, with the same bits on each.
  // kAborted after abort(); kIo if a member is gone; kCorrupt if a member runs other operations.
  [[nodiscard]] virtual Status allreduce_sum(std::span<float> values) = 0;
  [[nodiscard]] virtual Status allreduce_sum(std::span<double> values) = 0;

  // `all` (size() times the bytes of `mine`) receives every member's bytes, by rank.
  [[nodiscard]] virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all);
  // The same with parts of different sizes: `sizes` are their bytes by rank, equal on all members.
  // The parts are in `all` one after another, and this member's own part must be there already.
  // `all` may be longer; using the same memory again is cheaper.
  [[nodiscard]] virtual Status allgather_parts(std::span<const std::size_t> sizes,
                                               std::span<std::byte> all) = 0;

  // Every element becomes the mean over all members, with the same bits on each. Errors as above.
  [[nodiscard]] Status allreduce_mean(std::span<float> values);
  [[nodiscard]] Status allreduce_mean(std::span<double> values);

  // Each member sends a part to each, its own included: `sent` are the parts for all members one
  // after another, by rank, and `sent_sizes` are their bytes; the same for what is received. Sizes
  // must be agreed in advance (alltoall_sizes), and parts may be empty. Each pair needs a
  // connection, which is made when it is first used: among very many members, groups of rows and
  // then of columns need fewer. Errors as above; kUsage if this collective cannot do it.
  [[nodiscard]] virtual Status alltoall_parts(std::span<const std::size_t> sent_sizes,
                                              std::span<const std::byte> sent,
                                              std::span<const std::size_t> received_sizes,
                                              std::span<std::byte> received);
  // Tells every member how many bytes it will receive from this one: `sent_sizes` are by rank, and
  // so is the result.
  [[nodiscard]] Result<std::vector<std::size_t>> alltoall_sizes(
      std::span<const std::size_t> sent_sizes);

  // The same operations among some of the members, which all of these call with the same `ranks`:
  // ascending, with this member's own. The rank of a member in the group is its place among them.
  // Blocks until the members with which this one exchanges messages are connected, which is at once
  // if they have been before. Members that have several groups in common must use them in the same
  // order.
  //
  // The group belongs to this membership: it must be destroyed before this object, an error or
  // abort() of one ends both, and one thread at a time uses both. kIo if a member of the group is
  // gone; kAborted; kInternal for ranks that are no group, and kUsage if this collective has no
  // groups (CollectiveOptions::groups), after which it can still be used.
  [[nodiscard]] virtual Result<std::unique_ptr<Collective>> group(
      std::span<const std::uint32_t> ranks);

  // What this member exchanged with each other one so far, groups included; ranks are those of the
  // whole membership. It may outlive this object. Null if this collective does not count.
  [[nodiscard]] virtual std::shared_ptr<LinkLedger> ledger() const { return nullptr; }

  // Bytes along the ring, from each member to the next rank: send_right blocks until they are on
  // their way, receive_left until that many have arrived. Sizes must be agreed in advance. Errors
  // as above. Not for size 1.
  [[nodiscard]] virtual Status send_right(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status receive_left(std::span<std::byte> bytes) = 0;

  // Called by all members at the same moment, which they agreed on: the round-trip time of a
  // message to the next rank, undisturbed by others. Empty if the ring has no third link for
  // comparison. Errors as above.
  [[nodiscard]] virtual Result<std::optional<Duration>> measure_hop() { return std::nullopt; }

  // What carries the bytes: "shm (4 members of 1 host)", "tcp (2 members)", "nccl, and tcp (2
  // members)". "" if that says nothing.
  [[nodiscard]] virtual std::string description() const { return {}; }
  // The operations on memory of accelerators; null if this collective has none. Valid as long as
  // this object; the same one thread at a time uses both.
  [[nodiscard]] virtual DeviceCollective* device() { return nullptr; }

  // Ends a call in progress and every later one with kAborted, at once and whatever the other
  // members do. From any thread, any number of times.
  virtual void abort() = 0;
};

// Whether these are a group of `rank` among `size` members; otherwise kInternal.
[[nodiscard]] Status is_group(std::uint32_t rank, std::uint32_t size,
                              std::span<const std::uint32_t> ranks);

struct MemberAddress {
  std::string at;       // for tcp: "10.0.0.7:29400"; empty for size 1
  std::string sharing;  // with whom it may share memory (host_groups.h); empty: it cannot tell
};

// A member that listens for the others before they are connected. Used once.
//
// Both ends of a connection prove to each other that they know the generation's secret before
// anything else is sent over it (handshake.h). So neither a member of another generation nor a
// stranger can contribute or receive anything.
class CollectiveBuilder {
 public:
  virtual ~CollectiveBuilder() = default;

  // Where the others reach this member.
  [[nodiscard]] virtual MemberAddress address() const = 0;

  // `addresses`: those of all members, by rank. Blocks until the members with which this one
  // exchanges messages are connected. kRefused if one is not a member or has another rank; kIo if
  // one cannot be reached; kAborted after abort().
  [[nodiscard]] virtual Result<std::unique_ptr<Collective>> connect(
      std::span<const MemberAddress> addresses, const GroupKey& key) = 0;

  // Ends a connect() in progress, from any thread.
  virtual void abort() = 0;
};

// A member's place in a new generation.
struct Seat {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  // It holds the training state that goes on, which the members that lack it would receive.
  bool holds_state = false;
};
// How a member of a new generation starts.
using CollectiveFactory =
    std::function<Result<std::unique_ptr<CollectiveBuilder>>(const Seat& seat)>;

}  // namespace antdt::trainer
