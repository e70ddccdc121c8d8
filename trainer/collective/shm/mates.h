// The other members of a host: waiting for them, waking them, and noticing that one is gone.
//
// A member that waits looks at the awaited word for a moment, if the members have a CPU each, and
// then sleeps until the awaited member rings its eventfd. A connection to each member stays open
// and carries nothing: when it ends, that member is gone, however it ended. A member is missed only
// by those who wait for something that it has not done, so one that has finished may leave.
//
// The order of stores and loads of a word and of Words::sleeps_for is sequentially consistent:
// either the waiting member sees the new value, or the other one sees that it has to ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/link_ledger.h"
#include "trainer/collective/shm/bell.h"
#include "trainer/collective/shm/shared_memory.h"

namespace antdt::trainer::shm {

struct Mate {
  std::uint32_t rank = 0;  // among all members of the group, for messages
  OwnedFd connection;      // open for as long as it lives; not for this member itself
  OwnedFd bell;            // its eventfd
};

class Mates {
 public:
  struct Waiting {
    bool spins = false;  // whether looking for a moment is worth it before sleeping
    Duration timeout{};  // of one sleep
  };
  // `mates` are all members of the host by index; the one at `self` is this member. kIo.
  [[nodiscard]] static Result<std::unique_ptr<Mates>> of(std::uint32_t self,
                                                         std::vector<Mate> mates,
                                                         SharedMemory memory,
                                                         std::shared_ptr<Bell> bell,
                                                         Waiting waiting);

  [[nodiscard]] std::uint32_t self() const { return self_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(mates_.size()); }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t member) const { return mates_[member].rank; }
  [[nodiscard]] const SharedMemory& memory() const { return memory_; }
  [[nodiscard]] Words& words(std::uint32_t member) const { return memory_.words(member); }
  // Counts what is exchanged, by rank, and the time that this member sleeps.
  void count_in(std::shared_ptr<LinkLedger> ledger) { ledger_ = std::move(ledger); }
  void sent(std::uint32_t member, std::size_t bytes) const {
    if (ledger_ && bytes > 0) ledger_->sent_in_memory(rank_of(member), bytes);
  }
  void received(std::uint32_t member, std::size_t bytes) const {
    if (ledger_ && bytes > 0) ledger_->received(rank_of(member), bytes);
  }
  [[nodiscard]] const std::atomic<bool>& aborted() const { return bell_->aborted; }

  // Stores the value, and wakes the members that sleep until this one has done something.
  void post(std::atomic<std::uint64_t>& word, std::uint64_t value);

  // Blocks until `reached(m)` for every other member m; it looks at a word that m posts. kIo if one
  // is gone that has not reached it; kAborted.
  template <class Reached>
  [[nodiscard]] Status wait_for_all(const Reached& reached);
  // The same for one member alone.
  template <class Reached>
  [[nodiscard]] Status wait_for(std::uint32_t member, const Reached& reached);

  // Whether the collective may go on; otherwise the reason for which it is dead.
  [[nodiscard]] Status alive();
  // The first cause stays. Ends the connections, which releases the other members in turn.
  [[nodiscard]] Status die(std::string cause, ErrorKind kind = ErrorKind::kIo);

 private:
  using Reaches = std::function<bool(std::uint32_t member)>;

  Mates(std::uint32_t self, std::vector<Mate> mates, SharedMemory memory,
        std::shared_ptr<Bell> bell, Waiting waiting)
      : self_(self),
        mates_(std::move(mates)),
        gone_(mates_.size(), false),
        memory_(std::move(memory)),
        bell_(std::move(bell)),
        waiting_(waiting) {}
  [[nodiscard]] Status watch_connections();
  // Sleeps until `member` reaches it; all members for which `reaches` is false are missed if gone.
  [[nodiscard]] Status sleep_until(std::uint32_t member, const Reaches& reaches);
  [[nodiscard]] Status sleep();
  void close_all();

  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  // Some 30 us: longer than a chunk takes another core, shorter than two switches of a process.
  static constexpr int kLooks = 1000;

  const std::uint32_t self_;
  std::vector<Mate> mates_;
  std::vector<bool> gone_;  // by index
  const SharedMemory memory_;
  const std::shared_ptr<Bell> bell_;
  const Waiting waiting_;
  std::shared_ptr<LinkLedger> ledger_;  // null: nothing is counted
  OwnedFd events_;                      // an epoll of the bell and all connections
  std::string death_;                   // why it is dead; empty while it is alive
  ErrorKind death_kind_ = ErrorKind::kIo;
};

template <class Reached>
Status Mates::wait_for_all(const Reached& reached) {
  const Reaches reaches = std::ref(reached);
  for (std::uint32_t member = 0; member < size(); ++member) {
    if (member == self_ || reached(member)) continue;
    bool there = false;
    for (int i = 0; waiting_.spins && !there && i < kLooks; ++i) {
      relax();
      there = reached(member);
    }
    if (!there) ANTDT_RETURN_IF_ERROR(sleep_until(member, reaches));
  }
  return alive();
}

template <class Reached>
Status Mates::wait_for(std::uint32_t member, const Reached& reached) {
  const auto of_it = [&](std::uint32_t other) { return other != member || reached(other); };
  return wait_for_all(of_it);
}

}  // namespace antdt::trainer::shm
