// One training phase of a worker of parameter servers, batch by batch.
//
//   take a batch -> pull its rows -> compute -> push, commit at the home
//        ^                ^                            │
//        │                └───────────(late)───────────┤
//        └──(the place goes to the ledger)──(applied)──┘
//
// With a barrier the rows are those after all steps that this worker knows to be
// decided. With bounded staleness nobody that trains is more than so many pushes behind
// them, and without a bound they are what is there; nothing is late then. A place
// goes to the ledger only once the home has applied it: what is lost between the
// two, the home answers for. Who has nothing at hand says so to the servers, once,
// so that no step waits for it, and goes on waiting for records.
#pragma once

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
  // What is done with one batch.
  struct Attempt {
    ps::WorkerLink::Pulled pulled;
    std::uint64_t version = 0;  // that its rows are of
    PsModel::Computed computed;
  };
  [[nodiscard]] Result<PhaseEnd> work();
  // Nothing: the phase goes on.
  [[nodiscard]] Result<std::optional<PhaseEnd>> turn();
  void take_up_plan();
  [[nodiscard]] Result<data::Batch> next_batch(client::BatchTimes& times);
  // Whether it is in the model; not when this worker is to leave before.
  [[nodiscard]] Result<bool> train(const data::Examples& batch, client::BatchTimes& times);
  [[nodiscard]] bool barrier() const { return state_.consistency == ps::Consistency::kBarrier; }
  [[nodiscard]] std::uint64_t pull_clock() const;
  [[nodiscard]] Status pull(const std::vector<ps::TableKeys>& rows, Attempt& attempt,
                            client::BatchTimes& times);
  [[nodiscard]] Status compute(const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
                               Attempt& attempt, client::BatchTimes& times);
  // Whether it was applied.
  [[nodiscard]] Result<bool> push(const Attempt& attempt, std::uint64_t records,
                                  client::BatchTimes& times);
  void conclude(std::uint64_t records, const BatchSums& sums, client::BatchTimes times);
  [[nodiscard]] Status say_idle();
  [[nodiscard]] Result<PhaseEnd> finish();
  [[nodiscard]] Result<PhaseEnd> leave();
  void send_progress(bool done);

  PsTools& tools_;
  PsState& state_;
  ps::WorkerLink& link_;
  const wire::PhaseStart start_;
  std::uint64_t place_ = 0;  // records of this worker that are applied
  double loss_sum_ = 0, weight_sum_ = 0;
  bool idle_ = false;         // the servers know that nothing comes
  bool plan_changed_ = true;  // the next batch is the first under its plan
  std::string breakage_;
  Hold hold_;
};

}  // namespace antdt::trainer
