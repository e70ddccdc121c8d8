// What a training phase writes and says.
#include <algorithm>
#include <utility>

#include "trainer/worker/member/train_phase.h"

namespace antdt::worker {

bool TrainPhase::checkpoint_due() const { return agreed_.checkpoint > member_.training.checkpoint; }

// One checkpoint at a time: an order that arrives while this member still writes waits until it is
// done, because all members write at the step at which the slots of all have the number.
std::uint64_t TrainPhase::checkpoint_wanted() const {
  const std::uint64_t passed = member_.training.checkpoint;
  if (member_.rank == 0 && member_.saving != Saving::kNothing) return passed;
  return std::max(member_.heard.job.checkpoint, passed);
}

// The job daemon must hear what was trained until now before it hears of anything later. Writing
// takes as long as the disk needs, while steps go on.
void TrainPhase::write_checkpoint(Effects& out) {
  TrainingState& state = member_.training;
  state.checkpoint = state.cut = agreed_.checkpoint;
  undisturbed_ = false;
  if (member_.rank != 0) return;
  wire::CheckpointWritten about;
  about.number = agreed_.checkpoint;
  about.step = state.step;
  about.phase = start_.phase;
  about.places = state.places;
  about.history = state.log.history();
  out.emplace_back(Send{
      wire::CheckpointBegun{about.number, about.phase, about.step, about.places, about.history}});
  member_.saving = Saving::kOrdered;
  out.emplace_back(SpendTime{TimeUse::kCheckpoint});
  out.emplace_back(Save{std::move(about), Save::Kind::kOrdered});
  out.emplace_back(SpendTime{TimeUse::kOther});
}

void TrainPhase::report(Effects& out) {
  client::BatchTimes times = own_.times;
  times.samples = own_.computed;
  times.of_others = own_.of_others;
  if (times.samples == 0) return;
  // If the plan, a visit or a lack of records made a step different from the others, it says
  // nothing about this member's speed.
  times.counts =
      !plan_changed_ && !own_.visit && own_.slot.records >= member_.training.share.samples();
  times.hop = std::exchange(hop_, std::nullopt);
  out.emplace_back(Send{times});
}

void TrainPhase::send_progress(bool done, MonoTime now, Effects& out) {
  const TrainingState& state = member_.training;
  wire::Progress progress;
  progress.phase = start_.phase;
  progress.step = state.step;
  progress.place = stable_place_;
  progress.samples = start_.records - remaining_ + counted_;
  progress.loss_sum = state.phase == start_.phase ? state.loss_sum : 0;
  progress.weight_sum = state.phase == start_.phase ? state.weight_sum : 0;
  progress.plan = state.share.version;
  progress.done = done;
  progress.history = steps_to_tell(now);
  if (member_.rank == 0) {
    progress.visit = member_.exchange.visit();
    progress.kinds = compared_kinds();
  }
  out.emplace_back(Send{std::move(progress)});
}

// Now and then, everything that may not be recorded is reported, so that lost reports are repeated.
wire::StepHistory TrainPhase::steps_to_tell(MonoTime now) {
  if (member_.rank != 0 || now - steps_told_ < kTellSteps) return {};
  steps_told_ = now;
  const StepLog& log = member_.training.log;
  return replicas_may_differ() ? log.history_up_to(start_.phase, member_.exchange.committable())
                               : log.history();
}

}  // namespace antdt::worker
