// When a worker of parameter servers sends the pull of its next batch, and what that pull waits
// for.
//
//   not said ──say()──> said ──the rows are there, or forget()──> not said
//
// Without a bound it waits for nothing. With bounded staleness it waits for the pushes up to a
// given number before it, and with a barrier for the step that this push is in (ps_train_phase.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainer/worker/servers/ps_effects.h"
#include "trainer/worker/servers/ps_state.h"

namespace antdt::worker::ps_worker {

class NextPull {
 public:
  explicit NextPull(const PsState& worker) : worker_(worker) {}

  [[nodiscard]] bool is_said() const { return said_; }
  // It waits for `more` pushes (steps) beyond those that were sent (decided).
  void say(std::uint64_t more, Effects& out) {
    said_ = true;
    out.emplace_back(SayPull{clock(more)});
  }
  void say_early(std::uint64_t more, Effects& out) {
    out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
    say(more, out);
  }
  void answered() { said_ = false; }
  void forget(Effects& out) {
    if (said_) out.emplace_back(ForgetPull{});
    said_ = false;
  }

  // Whether the pull for the push after the next one waits for that push.
  [[nodiscard]] bool waits_for_push() const {
    return worker_.barrier() ||
           (worker_.consistency == ps::Consistency::kBounded && worker_.staleness == 0);
  }

 private:
  [[nodiscard]] std::uint64_t clock(std::uint64_t more) const {
    switch (worker_.consistency) {
      case ps::Consistency::kBarrier:
        return worker_.version + more;
      case ps::Consistency::kBounded: {
        const std::uint64_t pushes = worker_.pushes + more;
        return pushes - std::min(pushes, worker_.staleness);
      }
      case ps::Consistency::kUnbounded:
      case ps::Consistency::kSteps:  // members of a collective say what they have concluded instead
        return 0;
    }
    return 0;
  }

  const PsState& worker_;
  bool said_ = false;
};

}  // namespace antdt::worker::ps_worker
