// One training phase of a worker of parameter servers.
//
//   take a batch -> pull its rows -> compute -> push, committed at its home
//        ^                                             │
//        ├─(its records go back to the ledger)──(late)─┤
//        └──(the place goes to the ledger)──(applied)──┘
//
// What need not be waited for goes on while a batch is computed (worker_link.h): the
// pull of the next one is said before, and the push of the one before is decided
// meanwhile.
//
//   the wire      pull 2 ────> push 1, pull 3 ─────> push 2, pull 4 ─────>
//   this thread       compute 1           compute 2            compute 3
//
// The next pull is said as soon as what it waits for is under way. Without a bound it
// waits for nothing. With bounded staleness it waits for pushes up to so many before it,
// and is said before the compute where this worker's own are said by then (staleness
// 1 and more). With a barrier it waits for the step that this push is in, and is said
// after it; so no time passes between a step and the pull of the next. With bounded
// staleness nobody that trains is more than so many pushes behind the rows, and without
// a bound they are what is there; nothing is late then.
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

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire/messages.h"
#include "trainer/loop/hold.h"
#include "trainer/loop/ps_state.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::trainer {

class PsTrainPhase {
 public:
  // `link` is open; it may be aborted from another thread.
  PsTrainPhase(PsTools& tools, PsState& state, ps::WorkerLink& link, const wire::PhaseStart& start);

  // Until the phase ends. The data set's prefetcher must have been started.
  // Errors are this worker's own; a group that is over is PhaseEnd::kOver.
  [[nodiscard]] Result<PhaseEnd> run();

  // Why the group is over, when run() answered kOver.
  [[nodiscard]] const std::string& breakage() const { return breakage_; }

 private:
  struct Batch {
    data::Examples examples;
    client::BatchTimes times;
    std::vector<ps::TableKeys> rows;
    std::optional<ps::WorkerLink::Ticket> pull;  // that was said for it
  };
  // What is computed of a batch.
  struct Attempt {
    ps::WorkerLink::Pulled pulled;
    std::uint64_t version = 0;  // that its rows are of
    PsModel::Computed computed;
  };
  // A batch that is computed and whose place the ledger has not heard of.
  struct UnderWay {
    client::BatchTimes times;
    BatchSums sums;
    bool in_model = false;  // otherwise its push is not decided
  };
  [[nodiscard]] Result<PhaseEnd> work();
  // Nothing: the phase goes on.
  [[nodiscard]] Result<std::optional<PhaseEnd>> turn();
  void take_up_plan();
  // kData: next_ is there. Waits where nothing is at hand.
  [[nodiscard]] Result<client::TakeStatus> next_batch();
  [[nodiscard]] Result<data::Batch> wait_for_records(Duration& took);
  void begin(data::Examples examples, Duration reading);
  // Where a batch is at hand, makes it the next one and says its pull, which waits for
  // `more` pushes (steps) than are said (decided).
  [[nodiscard]] Status look_ahead(std::uint64_t more);
  // Until its push is said; with a barrier, until it is in the model or this worker is
  // to leave before.
  [[nodiscard]] Status train(Batch batch);
  [[nodiscard]] bool barrier() const { return state_.consistency == ps::Consistency::kBarrier; }
  // The pull for the push after the next one waits for that.
  [[nodiscard]] bool pull_waits_for_push() const;
  [[nodiscard]] std::uint64_t pull_clock(std::uint64_t more) const;
  [[nodiscard]] Status pull(Batch& batch, Attempt& attempt);
  [[nodiscard]] Status compute(Batch& batch, Attempt& attempt);
  [[nodiscard]] Status push(Batch& batch, const Attempt& attempt);
  // With a barrier: waits until the step is decided; whether the push was applied.
  [[nodiscard]] Result<bool> decide_step(client::BatchTimes& times);
  // That push was late.
  void give_back(client::BatchTimes& times);
  // False: this worker is to leave, and does not wait for it.
  [[nodiscard]] Result<bool> is_given_back();
  void forget_pull_of_next();
  // Gives the ledger what is decided.
  [[nodiscard]] Status conclude_decided();
  // And waits until no more than so many are not decided.
  [[nodiscard]] Status conclude_until(std::size_t under_way);
  void conclude(UnderWay& batch);
  [[nodiscard]] Status say_idle();
  [[nodiscard]] Result<PhaseEnd> finish();
  [[nodiscard]] Result<PhaseEnd> leave();
  void send_progress(bool done);

  PsTools& tools_;
  PsState& state_;
  ps::WorkerLink& link_;
  const wire::PhaseStart start_;
  std::optional<Batch> next_;
  std::deque<UnderWay> under_way_;
  std::uint64_t pushed_place_ = 0;  // records of this worker that are computed
  std::uint64_t place_ = 0;         // that are applied
  double loss_sum_ = 0, weight_sum_ = 0;
  bool idle_ = false;         // the servers know that nothing comes
  bool plan_changed_ = true;  // the next batch is the first under its plan
  std::string breakage_;
  Hold hold_;
};

}  // namespace antdt::trainer
