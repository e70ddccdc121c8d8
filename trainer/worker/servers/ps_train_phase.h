// One training phase of a worker of parameter servers. Pure.
//
//   taking a batch -> awaiting its rows -> computing -> pushing, committed at its home
//        ^                                                   │
//        ├──(its records go back to the ledger)─────(late)───┤
//        └──(the place goes to the ledger)──────────(applied)┘
//
//   taking ──(none is at hand)──> concluding ──(all is decided)──> awaiting records ──> (a batch)
//      ^                                        └──(no share)──> resting ──^   │
//      └───────────────────── going idle <─────(there are none)────────────────┤
//                                            finishing <──(the phase ends)─────┘
//   taking ──(it is to leave)──> leaving ──(all is decided)──> leaving idle ──> ended
//
// What need not be waited for goes on while a batch is computed: the pull of the next one is said
// before, and the push of the one before is decided meanwhile.
//
//   the wire      pull 2 ────> push 1, pull 3 ─────> push 2, pull 4 ─────>
//   the driver        compute 1           compute 2            compute 3
//
// The next pull is said as soon as what it waits for is under way: looking ahead, or looking
// behind the push. Without a bound it waits for nothing. With bounded staleness it waits for
// pushes up to so many before it, and is said before the compute where this worker's own are said
// by then (staleness 1 and more). With a barrier it waits for the step that this push is in, and is
// said after it; so no time passes between a step and the pull of the next. With bounded staleness
// nobody that trains is more than so many pushes behind the rows, and without a bound they are what
// is there; nothing is late then.
//
// With a barrier a push may be late: the others made its step. Its records go to another
// worker; as long as the ledger has not said so no place behind them is known, so the next
// batch is computed meanwhile and not pushed.
//
// A place goes to the ledger only once the home has applied it, in the order of the
// batches: what is lost between the two, the home answers for. Who has nothing at hand
// waits for what is under way, says so to the servers, once, so that no step waits for
// it, and goes on waiting for records.
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
    kMakingRoom,  // until few enough pushes are not decided
    kPushing,
    kLookingBehind,
    kAwaitingDecision,  // with a barrier
    kFinishing,
    kLeaving,
    kLeavingIdle,
    kEnded,
  };

  PsTrainPhase(PsState& worker, wire::PhaseStart start);

  // Each answers how the phase ended, once it has.
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
  // Beside whatever else is under way. An error: it cannot be so.
  [[nodiscard]] Status on(const PushDecided& input, MonoTime now, Effects& out);
  PhaseEnd lost(std::string why);

  // Why the group is over, when it ended with kOver.
  [[nodiscard]] const std::string& breakage() const { return breakage_; }
  [[nodiscard]] std::uint64_t place() const { return account_.place(); }
  [[nodiscard]] At at() const { return at_; }
  [[nodiscard]] const char* name_of_state() const;
  void check_invariants() const;

 private:
  struct Batch {
    client::BatchTimes times;
    std::uint64_t version = 0;  // that its rows are of
    double weight = 0;
    double loss = 0;
  };
  // A batch that is computed and whose place the ledger has not heard of.
  struct UnderWay {
    enum class Fate : std::uint8_t { kOpen, kApplied, kLate } fate = Fate::kOpen;
    Batch batch;
  };
  using Fate = UnderWay::Fate;

  End turn(MonoTime now, Effects& out);
  void take_up_plan(MonoTime now, Effects& out);
  // What is at hand; `at` says what for.
  End take(At at, MonoTime now, Effects& out);
  void begin_next(const BatchTaken& taken);
  // For servers. Goes on at once where nothing is to be waited for.
  End wait(At at, MonoTime now, Effects& out);
  End look(MonoTime now, Effects& out);
  End await_records(Effects& out);
  End await_rows(MonoTime now, Effects& out);
  End compute(Effects& out);
  End computed(MonoTime now, Effects& out);
  End push(Effects& out);
  End after_push(MonoTime now, Effects& out);
  End pushed(MonoTime now, Effects& out);
  End decide(MonoTime now, Effects& out);
  void give_back(Batch& batch, Effects& out);
  void conclude_decided(MonoTime now, Effects& out);
  End say_idle(At at, Effects& out);
  End leave(MonoTime now, Effects& out);
  PhaseEnd ended(PhaseEnd end);

  PsState& worker_;
  const wire::PhaseStart start_;
  At at_ = At::kTaking;
  PhaseAccount account_;
  std::optional<Batch> next_;
  NextPull next_pull_;
  Batch batch_;  // that is trained
  std::deque<UnderWay> under_way_;
  int pulls_ = 0;                   // of the next batch, that were answered
  MonoTime since_{};                // when it began to wait for servers
  std::uint64_t pushed_place_ = 0;  // records of this worker that are computed
  bool idle_ = false;               // the servers know that nothing comes
  bool plan_changed_ = true;        // the next batch is the first under its plan
  bool gave_back_ = false;          // and the ledger has not said that it has it
  std::string breakage_;
};

}  // namespace antdt::worker::ps_worker
