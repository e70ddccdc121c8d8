// The operations of the members of one host, in the memory that they share.
//
// What is summed or gathered is cut into chunks of at most kSlotBytes, which pass through the slots
// of the members. A large sum takes three stages for each chunk, of which those of neighbouring
// chunks overlap:
//
//   stage    each member copies its values into its slot, except for its own slice
//   reduce   each member adds up its own slice over all members, in the order of their indices
//   collect  each member copies the sums of the other slices
//
// One member computes each element, so all have the same bits. Small sums are staged whole, and
// every member adds up everything, in the same order: one round. Members are named by their index.
//
// A member may run ahead by kSlots chunks: before it stages a chunk, all others must be done with
// the one that was in that slot (Words::done).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/options.h"
#include "trainer/collective/shm/mates.h"
#include "trainer/collective/shm/shared_memory.h"
#include "trainer/collective/shm/stores.h"

namespace antdt::trainer::shm {

class HostGroup {
 public:
  using SendDelay = CollectiveOptions::SendDelay;

  HostGroup(std::unique_ptr<Mates> mates, SendDelay send_delay)
      : mates_(std::move(mates)), send_delay_(std::move(send_delay)) {}

  [[nodiscard]] std::uint32_t self() const { return mates_->self(); }
  [[nodiscard]] std::uint32_t size() const { return mates_->size(); }

  // Errors of all operations: kAborted; kIo if a member is gone; kCorrupt if a member runs other
  // operations, or wrote what cannot be.
  //
  // Every element becomes the sum over all members.
  template <class T>
  [[nodiscard]] Status allreduce(std::span<T> values);
  // The same on member 0 alone; the values of the others are undefined afterwards.
  template <class T>
  [[nodiscard]] Status reduce(std::span<T> values);
  // Member 0's bytes replace those of the others.
  [[nodiscard]] Status broadcast(std::span<std::byte> bytes);
  // `parts` are where each member's bytes belong in this member's memory, by index. Its own are
  // there already. Sizes must be equal on all members.
  [[nodiscard]] Status gather(std::span<const std::span<std::byte>> parts);

  // Bytes to the neighbour on this side of the ring, which is the member `to`; its receive() names
  // the other side. Blocks until the bytes are in shared memory.
  [[nodiscard]] Status send(Side side, std::uint32_t to, std::span<const std::byte> bytes);
  // Bytes that `from` sends towards `side`, that is, the side on which it has this member.
  [[nodiscard]] Status receive(Side side, std::uint32_t from, std::span<std::byte> bytes);

  // Ends the group, as an error does.
  void end(const Error& why) { static_cast<void>(mates_->die(why.message, why.kind)); }

 private:
  enum class For : std::uint8_t { kAll, kFirst };  // who gets a sum

  template <class T>
  [[nodiscard]] Status sum(std::span<T> values, For whom);
  template <class T>
  [[nodiscard]] Status sum_at_once(std::span<T> values, For whom);
  template <class T>
  [[nodiscard]] Status sum_by_slices(std::span<T> values, For whom);
  // Adds up `values` of all members from the slots of the chunk, from `first` on; this member's own
  // are in `values`, and its slot gets the sum, too, if `publish`.
  template <class T>
  void add_up(std::uint64_t chunk, std::size_t first, std::span<T> values, bool publish);

  // Calls f(m) for each other member.
  template <class F>
  void for_others(F f) const {
    for (std::uint32_t m = 0; m < size(); ++m) {
      if (m != self()) f(m);
    }
  }
  [[nodiscard]] Status begin();
  // Copies into a slot of this member, as fast as the others' cores let it.
  void write(std::span<std::byte> slot, std::span<const std::byte> bytes) const;
  void copied(std::uint64_t chunk, std::size_t bytes, MonoTime began);
  // Waits until the chunk's slot of this member is free.
  [[nodiscard]] Status claim(std::uint64_t chunk);
  void staged(std::uint64_t chunk, std::size_t bytes_of_operation, std::size_t bytes_of_chunk);
  [[nodiscard]] Status await_staged(std::uint64_t chunk);
  // Whether a member's chunk belongs to this operation, which has so many bytes of that member.
  [[nodiscard]] Status check(std::uint32_t member, std::uint64_t chunk, std::size_t bytes);
  void done(std::uint64_t chunk);
  // What is staged is for all others at once, so it takes as long as to the slowest of them.
  void hold_back_for_all(std::size_t bytes) const;
  [[nodiscard]] Status push(Side side, std::uint32_t to, std::span<const std::byte> bytes);
  [[nodiscard]] Status pull(Side side, std::uint32_t from, std::span<std::byte> bytes);

  struct MessageHeader {
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;  // counts the messages in this direction
  };
  struct Direction {
    std::uint64_t bytes = 0;     // that went through the channel
    std::uint64_t messages = 0;  // whole ones
  };

  const std::unique_ptr<Mates> mates_;
  const SendDelay send_delay_;
  StoreChoice stores_;
  std::uint64_t operation_ = 0;
  std::uint64_t next_chunk_ = 0;
  std::array<Direction, 2> sent_{};      // by the side on which the other member is
  std::array<Direction, 2> received_{};  // by the side on which the sender has this member
};

}  // namespace antdt::trainer::shm
