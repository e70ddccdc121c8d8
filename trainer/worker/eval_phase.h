// One evaluation phase of one worker, of either kind: without a collective, only with the ledger.
// Pure.
//
//   begin ──> evaluating ──(the phase's records are all committed)────────────────> ended: done
//                 │  ^└──(the generation is over or will end, or it is to leave)──> ended: over,
//                 leave └──┘ a batch is evaluated and committed, or there was none
//
// Records that were not committed are granted again.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/member/member_state.h"

namespace antdt::worker {

class EvalPhase {
 public:
  EvalPhase(const Heard& heard, wire::PhaseStart start, std::uint32_t batch);

  // Each returns how the phase ended, once it has.
  using End = std::optional<PhaseEnd>;
  // `Out`: Effects, or those of a worker of parameter servers.
  template <class Out>
  End begin(Out& out);
  template <class Out>
  End on(BatchEvaluated input, Out& out);

  [[nodiscard]] const wire::PhaseStart& start() const { return start_; }
  [[nodiscard]] std::uint64_t place() const { return place_; }

 private:
  template <class Out>
  End next(TimeUse waiting, Out& out);

  const Heard& heard_;
  const wire::PhaseStart start_;
  const std::uint32_t batch_;  // in records
  std::uint64_t place_ = 0;    // committed records of this member
};

}  // namespace antdt::worker
