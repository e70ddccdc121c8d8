// One training phase of a worker of parameter servers. Pure.
//
//   taking a batch -> awaiting its rows -> computing -> pushing, committed at its home
//        ^                                                   │
//        ├──(its records go back to the ledger)─────(late)───┤
//        └──(the place goes to the ledger)──────────(applied)┘
//
//   taking ──(no records)──> concluding ──(all is decided)──> awaiting records ──> (a batch)
//      ^                                        └──(no share)──> resting ──^   │
//      └───────────────────── going idle <─────(there are none)────────────────┤
//                                            finishing <──(the phase ends)─────┘
//   taking ──(it is to leave)──> leaving ──(all is decided)──> leaving idle ──> ended
//
// Everything that need not be waited for happens while a batch is computed: the pull of the next
// one is sent before that, and the push of the previous one is decided meanwhile.
//
//   the wire      pull 2 ────> push 1, pull 3 ─────> push 2, pull 4 ─────>
//   the driver        compute 1           compute 2            compute 3
//
// The next pull is sent as soon as what it waits for is in progress: either before the computation
// (looking ahead) or behind the push (looking behind). Without a bound it waits for nothing. With
// bounded staleness it waits for the pushes up to a given number before it, and is sent before the
// computation if this worker has sent its own of these by then (staleness 1 and more). With a
// barrier it waits for the step that this push is in, and is sent behind the push, so that no time
// passes between a step and the pull of the next. With bounded staleness no worker that trains is
// more than that number of pushes behind the rows; without a bound the rows are whatever is there.
// In both cases no push is late.
//
// With a barrier a push may be late: the others made its step. Its records go to another worker.
// Until the ledger has confirmed that, no place behind them is known, so the next batch is computed
// meanwhile and not pushed.
//
// With a replica of the dense parameters (shadow_chain.h), exchanges ride on pushes:
//
//   computing ──(in the foreground, every k-th)──> awaiting the centre ──> pushing ──> awaiting the
//                                                  exchange ──> what follows a batch
//   awaiting records ──(there are none, or the phase ends)──> draining ──> going idle, finishing
//   leaving ──(all is decided)──> draining ──> leaving idle
//
// A place goes to the ledger only once the home has applied it, in the order of the batches; if the
// worker is lost between the two, the home reports it. A worker without records waits for its
// pushes in progress, tells the servers once, so that no step waits for it, and goes on waiting for
// records.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/member/member_state.h"
#include "trainer/worker/servers/next_pull.h"
#include "trainer/worker/servers/phase_account.h"
#include "trainer/worker/servers/ps_effects.h"
#include "trainer/worker/servers/ps_inputs.h"
#include "trainer/worker/servers/ps_state.h"

namespace antdt::worker::ps_worker {

class PsTrainPhase {
 public:
  enum class At : std::uint8_t {
    kTaking,
    kConcluding,
    kResting,
    kAwaitingRecords,
    kGoingIdle,
    kAwaitingRows,
    kLookingAhead,
    kComputing,
    kAwaitingGivenBack,
    kAwaitingCentre,  // of an exchange in the foreground
    kMakingRoom,      // until few enough pushes are undecided
    kPushing,
    kLookingBehind,
    kAwaitingDecision,  // with a barrier
    kAwaitingExchange,  // in the foreground, until it is decided
    kDraining,          // until what the replica was trained since the last exchange is decided
    kFinishing,
    kLeaving,
    kLeavingIdle,
    kEnded,
  };

  PsTrainPhase(PsState& worker, wire::PhaseStart start);

  // Each returns how the phase ended, once it has.
  using End = std::optional<PhaseEnd>;
  End begin(MonoTime now, Effects& out);
  End on(const BatchTaken& input, MonoTime now, Effects& out);
  End on(const RowsPulled& input, MonoTime now, Effects& out);
  End on(const ServersAnswered& input, MonoTime now, Effects& out);
  End on(const BatchComputed& input, MonoTime now, Effects& out);
  End on(const GivenBack& input, MonoTime now, Effects& out);
  End on(const PushSaid& input, MonoTime now, Effects& out);
  End on(const SaidIdle& input, MonoTime now, Effects& out);
  End on(const RecordsAwaited& input, MonoTime now, Effects& out);
  // Independent of the operation in progress. The error: the decision is impossible.
  [[nodiscard]] Status on(const PushDecided& input, MonoTime now, Effects& out);
  PhaseEnd lost(std::string why);

  // Why the group is over, if the phase ended with kOver.
  [[nodiscard]] const std::string& breakage() const { return breakage_; }
  [[nodiscard]] std::uint64_t place() const { return account_.place(); }
  [[nodiscard]] At at() const { return at_; }
  [[nodiscard]] const char* name_of_state() const;
  void check_invariants() const;

 private:
  struct Batch {
    client::BatchTimes times;
    std::uint64_t version = 0;  // the version of its rows
    double weight = 0;
    double loss = 0;
  };
  // A batch that is computed and whose place has not been sent to the ledger.
  struct UnderWay {
    enum class Fate : std::uint8_t { kOpen, kApplied, kLate } fate = Fate::kOpen;
    Batch batch;
  };
  using Fate = UnderWay::Fate;

  End turn(MonoTime now, Effects& out);
  void take_up_plan(MonoTime now, Effects& out);
  // Takes the records that are there; `at` says for which state.
  End take(At at, MonoTime now, Effects& out);
  void begin_next(const BatchTaken& taken);
  // Waits for servers. Goes on at once if there is nothing to wait for.
  End wait(At at, MonoTime now, Effects& out);
  End look(MonoTime now, Effects& out);
  End await_records(Effects& out);
  End await_rows(MonoTime now, Effects& out);
  End compute(Effects& out);
  End computed(MonoTime now, Effects& out);
  End push(MonoTime now, Effects& out);
  End after_push(MonoTime now, Effects& out);
  End pushed(MonoTime now, Effects& out);
  End decide(MonoTime now, Effects& out);
  void give_back(Batch& batch, Effects& out);
  void conclude_decided(MonoTime now, Effects& out);
  End say_idle(At at, Effects& out);
  void pull_centre_if_due(Effects& out);
  // `then`: going idle, finishing or leaving idle.
  End drain(At then, MonoTime now, Effects& out);
  End drain_on(MonoTime now, Effects& out);
  End leave(MonoTime now, Effects& out);
  PhaseEnd ended(PhaseEnd end);

  PsState& worker_;
  const wire::PhaseStart start_;
  At at_ = At::kTaking;
  PhaseAccount account_;
  std::optional<Batch> next_;
  NextPull next_pull_;
  Batch batch_;  // the batch that is trained
  std::deque<UnderWay> under_way_;
  int pulls_ = 0;                   // how many pulls of the next batch were answered
  MonoTime since_{};                // when it began to wait for servers
  std::uint64_t pushed_place_ = 0;  // how many records of this worker were computed
  bool idle_ = false;               // the servers know that it has nothing to push
  bool plan_changed_ = true;        // the next batch is the first under its plan
  bool gave_back_ = false;          // and the ledger has not confirmed it
  bool exchange_holds_up_ = false;  // the push that is made carries one in the foreground
  At after_drain_ = At::kEnded;     // what follows it
  std::string breakage_;
};

}  // namespace antdt::worker::ps_worker
