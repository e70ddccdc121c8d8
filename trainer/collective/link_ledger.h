// What a member exchanged with each other member, and how long it waited for it.
//
// The thread that uses the collective adds to it with a few additions for each message; it makes no
// system call for that, and allocates nothing. Any other thread may read it meanwhile: each number
// is whole, but two numbers need not be of the same moment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/clock.h"

namespace antdt::trainer {

// What bytes are sent for.
enum class Traffic : std::uint8_t {
  kGradients,
  // With the buffers of a model, such as the statistics of batch normalisation, and with what the
  // optimizer remembers where whole states are averaged.
  kParameters,
  kSlots,    // what members tell one another at the end of a step
  kHealing,  // the training state, sent to members that lack it
  kOther,
};
inline constexpr std::size_t kTraffics = 5;
[[nodiscard]] constexpr std::string_view name_of(Traffic traffic) {
  constexpr std::array<std::string_view, kTraffics> kNames = {"gradients", "parameters", "slots",
                                                              "healing", "other"};
  return kNames[static_cast<std::size_t>(traffic)];
}

class LinkLedger {
 public:
  struct Link {
    std::uint64_t sent_bytes = 0;  // of tensors and messages, without what carries them
    std::uint64_t received_bytes = 0;
    // For bytes from the peer, or until its connection took bytes; in shared memory, asleep until
    // it had done what was awaited. If a drill holds a member back before it sends, that counts,
    // too.
    Duration waited{};
    bool operator==(const Link&) const = default;
  };

  explicit LinkLedger(std::uint32_t members)
      : members_(members), links_(std::make_unique<Counters[]>(members)) {}

  [[nodiscard]] std::uint32_t members() const { return members_; }
  [[nodiscard]] Link of(std::uint32_t peer) const {
    const Counters& c = links_[peer];
    return {c.sent, c.received, std::chrono::nanoseconds(c.waited_ns)};
  }
  // Bytes sent to all peers.
  [[nodiscard]] std::uint64_t sent_bytes(Traffic traffic) const {
    return sent_by_traffic_[static_cast<std::size_t>(traffic)];
  }
  // Of all these: through memory that this member shares with others.
  [[nodiscard]] std::uint64_t sent_in_memory() const { return sent_in_memory_; }

  // The following are called by the thread that uses the collective.
  [[nodiscard]] Traffic traffic() const { return traffic_; }
  void set_traffic(Traffic traffic) { traffic_ = traffic; }
  void sent(std::uint32_t peer, std::size_t bytes) {
    add(links_[peer].sent, bytes);
    add(sent_by_traffic_[static_cast<std::size_t>(traffic_)], bytes);
  }
  void sent_in_memory(std::uint32_t peer, std::size_t bytes) {
    sent(peer, bytes);
    add(sent_in_memory_, bytes);
  }
  void received(std::uint32_t peer, std::size_t bytes) {
    add(links_[peer].received, bytes);
    if (told_) told_(bytes);
  }
  void tell_received(std::function<void(std::size_t bytes)> told) { told_ = std::move(told); }
  void waited(std::uint32_t peer, Duration d) {
    add(links_[peer].waited_ns,
        static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()));
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  struct Counters {
    Counter sent = 0, received = 0, waited_ns = 0;
  };
  // One thread writes, so no locked addition is needed.
  static void add(Counter& counter, std::uint64_t more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  const std::uint32_t members_;
  const std::unique_ptr<Counters[]> links_;  // by rank
  std::array<Counter, kTraffics> sent_by_traffic_{};
  Counter sent_in_memory_ = 0;
  Traffic traffic_ = Traffic::kGradients;
  std::function<void(std::size_t)> told_;
};

// While it exists, what is sent counts as `traffic`. Null `ledger`: nothing is counted.
class CountedAs {
 public:
  CountedAs(std::shared_ptr<LinkLedger> ledger, Traffic traffic) : ledger_(std::move(ledger)) {
    if (!ledger_) return;
    before_ = ledger_->traffic();
    ledger_->set_traffic(traffic);
  }
  ~CountedAs() {
    if (ledger_) ledger_->set_traffic(before_);
  }
  CountedAs(const CountedAs&) = delete;
  CountedAs& operator=(const CountedAs&) = delete;

 private:
  const std::shared_ptr<LinkLedger> ledger_;
  Traffic before_{};
};

// While it exists, `told` is called for all that is received, piece by piece, by the thread that
// uses the collective. Null `ledger`: never.
class ReceivedTold {
 public:
  ReceivedTold(std::shared_ptr<LinkLedger> ledger, std::function<void(std::size_t bytes)> told)
      : ledger_(std::move(ledger)) {
    if (ledger_) ledger_->tell_received(std::move(told));
  }
  ~ReceivedTold() {
    if (ledger_) ledger_->tell_received(nullptr);
  }
  ReceivedTold(const ReceivedTold&) = delete;
  ReceivedTold& operator=(const ReceivedTold&) = delete;

 private:
  const std::shared_ptr<LinkLedger> ledger_;
};

}  // namespace antdt::trainer
