// The exchanges between a worker's replica of the dense parameters and their centre on the servers
// (trainer.sync = "shadow-…", docs/synchronisation/shadow.md). Pure.
//
//   resting ──(due: its pull is sent)──> pulling ──(the centre is here)──> holding
//      ^                                                                     │
//      └──(that push is decided)── pushing <──(a push carries the exchange)──┘
//
// In the background an exchange is due as soon as the replica was trained since the last one, and
// nothing waits for it: the pull is under way while a batch computes, and the exchange rides on the
// push of the batch that is computed when the centre is here. So it needs no decision and no place
// of its own, and a push that counts once carries an exchange that counts once. In the foreground
// an exchange is due after every k-th step, and the step waits for it (ps_train_phase.h). At the
// end of a phase, when a worker has no records, and before it leaves, the chain is drained: what
// was trained since the last exchange goes in a push without records.
//
// One exchange at a time: the centre that the next one pulls contains this one. The replica moves
// when the push is made. If the group ends before the push is decided, the replica ends with it,
// and begins with the centre in the next group; so what is lost is what it trained since the last
// exchange that was decided.
#pragma once

#include <cstdint>

#include "core/check.h"
#include "core/clock.h"
#include "core/wire/worker_messages.h"

namespace antdt::worker::ps_worker {

struct ShadowRules {
  std::uint64_t every = 0;  // 0: in the background; k: each k-th step waits for its exchange
};

class ShadowChain {
 public:
  enum class At : std::uint8_t { kResting, kPulling, kHolding, kPushing };

  explicit ShadowChain(ShadowRules rules) : rules_(rules) {}

  // From: any. To: resting, with a replica that is the centre.
  void begin() {
    at_ = At::kResting;
    steps_ = 0;
  }
  // A batch was trained into the replica.
  void trained(MonoTime now) {
    if (is_drained_) since_ = now;
    is_drained_ = false;
    ++steps_;
  }

  // Whether the pull for the next exchange is to be sent now.
  [[nodiscard]] bool is_due() const {
    return at_ == At::kResting && steps_ > 0 && steps_ >= rules_.every;
  }
  // Whether this step waits until its exchange is decided.
  [[nodiscard]] bool holds_up() const { return rules_.every > 0 && steps_ >= rules_.every; }
  // From: resting. To: pulling.
  void pull_said() { move(At::kResting, At::kPulling); }
  // From: pulling. To: holding.
  void centre_is_here() { move(At::kPulling, At::kHolding); }
  // From: holding. To: pushing. Push `number` carries the exchange; `drains`: and no records.
  void carried(std::uint64_t number, bool drains, MonoTime now) {
    move(At::kHolding, At::kPushing);
    push_ = number;
    is_drained_ = drains;
    ++sums_.exchanges;
    sums_.steps += steps_;
    sums_.gap_us += microseconds(now - since_);
    since_ = now;
    steps_ = 0;
  }
  // From: pushing, if it is that push. To: resting.
  void decided(std::uint64_t number) {
    if (at_ == At::kPushing && number == push_) at_ = At::kResting;
  }
  void waited(Duration time) { sums_.waited_us += microseconds(time); }

  [[nodiscard]] At at() const { return at_; }
  // How many steps of this worker are in no exchange.
  [[nodiscard]] std::uint64_t behind() const { return steps_; }
  // Whether push `number` carries an exchange and no records, and is not decided.
  [[nodiscard]] bool drains_with(std::uint64_t number) const {
    return at_ == At::kPushing && is_drained_ && number == push_;
  }
  // Over the life of this worker's process.
  [[nodiscard]] const wire::ShadowSums& sums() const { return sums_; }

 private:
  void move(At from, At to) {
    ANTDT_CHECK(at_ == from, "the exchange is {}, and goes from {} to {}", static_cast<int>(at_),
                static_cast<int>(from), static_cast<int>(to));
    at_ = to;
  }
  static std::uint64_t microseconds(Duration time) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    return us > 0 ? static_cast<std::uint64_t>(us) : 0;
  }

  ShadowRules rules_;
  At at_ = At::kResting;
  std::uint64_t steps_ = 0;  // since the last exchange
  std::uint64_t push_ = 0;   // the one that carries the exchange
  bool is_drained_ = true;   // the next step is the first of a gap
  MonoTime since_{};         // when the present gap began
  wire::ShadowSums sums_;
};

}  // namespace antdt::worker::ps_worker
