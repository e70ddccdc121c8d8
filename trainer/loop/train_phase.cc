#include "trainer/loop/train_phase.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/check.h"
#include "trainer/loop/habits.h"

namespace antdt::trainer {
namespace {

// How long a group without any records waits before it asks again.
constexpr Duration kIdleWait = std::chrono::milliseconds(20);
constexpr Duration kTellSteps = std::chrono::seconds(1);

}  // namespace

TrainPhase::TrainPhase(Tools& tools, TrainingState& state, Collective& collective,
                       CheckpointWriter& writer, const wire::PhaseStart& start)
    : tools_(tools),
      state_(state),
      collective_(collective),
      writer_(writer),
      start_(start),
      remaining_(start.records - std::min(start.committed, start.records)),
      steps_told_(tools.clock.now()),
      hold_(tools.client, tools.clock, state.share.samples()),
      hop_timer_(tools.clock.now()) {}

Result<PhaseEnd> TrainPhase::run() {
  const Timed other(tools_.account, TimeUse::kOther);
  tools_.injected.training_began();
  while (!complete()) {
    auto computed = compute_share();
    if (!computed) {
      collective_.abort();
      static_cast<void>(tools_.engine.finish_reduction());
      return tl::unexpected(computed.error());
    }
    Own& own = *computed;
    auto agreed = exchange(own, false);
    if (!agreed) return broken(agreed.error());
    conclude(*agreed, own);
    if (agreed->any_leaving) {
      stopped_early_ = true;
      break;
    }
    if (agreed->measure_hop) {
      if (const Status measured = measure_hop(); !measured) return broken(measured.error());
    }
    if (agreed->records == 0) wait_for_records();
    hold_.update(place_, state_.share.samples());
  }
  return finish();
}

// The last step with records is stable when one more has completed.
Result<PhaseEnd> TrainPhase::finish() {
  Own nothing;
  auto agreed = exchange(nothing, true);
  if (!agreed) return broken(agreed.error());
  conclude(*agreed, nothing);
  stable_place_ = place_;
  tools_.client.commit(stable_place_);
  steps_told_ = {};
  send_progress(complete());
  if (wants_to_leave()) return PhaseEnd::kLeave;
  if (stopped_early_ && !complete()) {
    breakage_ = "its members stopped together";
    return PhaseEnd::kOver;
  }
  return PhaseEnd::kDone;
}

// What this member computed for the step that did not complete is forgotten; its
// records are handed out again.
PhaseEnd TrainPhase::broken(const Error& error) {
  tools_.engine.discard();
  breakage_ = error.message;
  return PhaseEnd::kOver;
}

Result<TrainPhase::Own> TrainPhase::compute_share() {
  Own own;
  tools_.engine.begin_step(collective_);
  for (std::uint32_t i = 0; i < state_.share.accumulation && state_.share.micro_batch > 0; ++i) {
    ANTDT_TRY(const client::TakeStatus status,
              compute_micro_batch(own, i + 1 == state_.share.accumulation));
    own.slot.has_data = status == client::TakeStatus::kData;
    if (!own.slot.has_data) break;
  }
  own.short_of_data = own.slot.records < state_.share.samples();
  return own;
}

Result<client::TakeStatus> TrainPhase::compute_micro_batch(Own& own, bool last) {
  MonoTime began = tools_.clock.now();
  const TimeUse before = tools_.account.enter(TimeUse::kData);
  auto batch = tools_.prefetcher.next(state_.share.micro_batch, kDataPatience);
  if (batch && batch->status == client::TakeStatus::kData) {
    tools_.injected.after_data(began, state_.step.value);
  }
  const MonoTime got = tools_.clock.now();
  own.times.data += got - began;
  if (!batch) return tl::unexpected(batch.error());
  if (batch->status != client::TakeStatus::kData) {
    tools_.account.enter(before);
    return batch->status;
  }
  tools_.account.enter(TimeUse::kCompute);
  const auto samples = static_cast<std::uint32_t>(batch->examples.count);
  ANTDT_TRY(const BatchSums sums, tools_.engine.compute(batch->examples, last));
  tools_.injected.after_compute(got, state_.step.value, samples);
  own.times.compute += tools_.clock.now() - got;
  tools_.account.enter(before);
  own.slot.records += samples;
  own.slot.weight += sums.weight;
  own.slot.loss += sums.loss;
  return client::TakeStatus::kData;
}

Result<Agreement> TrainPhase::exchange(Own& own, bool empty) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  if (!empty) ANTDT_RETURN_IF_ERROR(tools_.engine.finish_reduction());
  own.slot.place = place_ + own.slot.records;
  own.slot.plan = std::max(tools_.client.held_plan(), state_.share.version);
  own.slot.checkpoint = checkpoint_wanted();
  own.slot.leaving = wants_to_stop();
  own.slot.wants_hop = hop_timer_.wants(began);
  const StepSlotBytes mine = encode(own.slot);
  std::vector<std::byte> all(mine.size() * collective_.size());
  ANTDT_RETURN_IF_ERROR(collective_.allgather(mine, all));
  const MonoTime ended = tools_.clock.now();
  own.times.wait = ended - began;
  hop_timer_.waited(own.times.wait, ended);
  return agree_bytes(all);
}

void TrainPhase::conclude(const Agreement& agreed, Own& own) {
  if (agreed.applies()) {
    const Timed computing(tools_.account, TimeUse::kCompute);
    const MonoTime began = tools_.clock.now();
    tools_.engine.apply(agreed.weight);
    own.times.compute += tools_.clock.now() - began;
  } else {
    tools_.engine.discard();
  }
  state_.step = state_.step.next();
  state_.pristine = false;
  if (state_.phase != start_.phase) {  // its first step; not before, see TrainingState
    state_.phase = start_.phase;
    state_.loss_sum = state_.weight_sum = 0;
  }
  state_.loss_sum += agreed.loss;
  state_.weight_sum += agreed.weight;
  state_.places.clear();
  for (std::size_t rank = 0; rank < agreed.places.size() && rank < state_.members.size(); ++rank) {
    state_.places.push_back({state_.members[rank], agreed.places[rank]});
  }
  state_.log.forget(tools_.client.steps_recorded(state_.log.history().generation));
  state_.log.add(state_.step, start_.phase, agreed.places, agreed.taken);
  // That this step completed means that everybody has applied the one before.
  stable_place_ = place_;
  place_ = own.slot.place;
  counted_ += agreed.records;
  report(own);
  plan_changed_ = false;
  if (agreed.checkpoint > state_.checkpoint) checkpoint(agreed);
  if (agreed.plan > state_.share.version) switch_plan(agreed.plan);
  tools_.client.commit(stable_place_);
  send_progress(false);
}

void TrainPhase::switch_plan(PlanVersion version) {
  const auto plan = tools_.client.plan(version);
  ANTDT_CHECK(plan.has_value(), "a slot said plan {} was held, and it is not", version);
  state_.share = share_of(*plan, tools_.client.member().worker);
  tools_.engine.set_rate(plan->rate);
  plan_changed_ = true;
  hold_.set(place_, state_.share.samples());
}

// One checkpoint at a time: an order that comes while this member still writes waits until it
// has, since all write at the step where the slots of all hold the number.
std::uint64_t TrainPhase::checkpoint_wanted() const {
  if (collective_.rank() == 0 && writer_.busy()) return state_.checkpoint;
  return std::max(tools_.client.checkpoint_ordered(), state_.checkpoint);
}

// The job daemon hears what was trained by now before it hears of anything after that; what is
// written takes as long as the disk needs, while steps go on.
void TrainPhase::checkpoint(const Agreement& agreed) {
  state_.checkpoint = agreed.checkpoint;
  if (collective_.rank() != 0) return;
  const Timed writing(tools_.account, TimeUse::kCheckpoint);
  wire::CheckpointWritten about;
  about.number = agreed.checkpoint;
  about.step = state_.step;
  about.phase = start_.phase;
  about.places = state_.places;
  about.history = state_.log.history();
  tools_.client.checkpoint_begun(
      {about.number, about.phase, about.step, about.places, about.history});
  writer_.begin(tools_.engine, std::move(about),
                [&client = tools_.client](const wire::CheckpointWritten& written) {
                  client.checkpoint_written(written);
                });
}

void TrainPhase::report(const Own& own) {
  client::BatchTimes times = own.times;
  times.samples = own.slot.records;
  // A step that the plan or a lack of records made unlike the others says
  // nothing of this member's speed.
  times.counts = !plan_changed_ && !own.short_of_data;
  if (times.samples > 0) times.hop = std::exchange(hop_, std::nullopt);
  if (times.samples > 0) tools_.client.report(times);
  tools_.client.time_account(tools_.account.seconds());
}

Status TrainPhase::measure_hop() {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  ANTDT_TRY(hop_, collective_.measure_hop());
  hop_timer_.measured(began, tools_.clock.now());
  return {};
}

void TrainPhase::send_progress(bool done) {
  wire::Progress progress;
  progress.phase = start_.phase;
  progress.step = state_.step;
  progress.place = stable_place_;
  progress.samples = start_.records - remaining_ + counted_;
  progress.loss_sum = state_.phase == start_.phase ? state_.loss_sum : 0;
  progress.weight_sum = state_.phase == start_.phase ? state_.weight_sum : 0;
  progress.plan = state_.share.version;
  progress.done = done;
  progress.history = steps_to_tell();
  tools_.client.progress(progress);
}

// Everything that is not known to be recorded, now and then: whatever was lost
// on the way is said again.
wire::StepHistory TrainPhase::steps_to_tell() {
  const MonoTime now = tools_.clock.now();
  if (collective_.rank() != 0 || now - steps_told_ < kTellSteps) return {};
  steps_told_ = now;
  return state_.log.history();
}

void TrainPhase::wait_for_records() {
  const Timed waiting(tools_.account, TimeUse::kShardWait);
  std::this_thread::sleep_for(kIdleWait);
}

bool TrainPhase::wants_to_leave() const {
  return tools_.stop || tools_.client.leave_requested().has_value();
}

bool TrainPhase::wants_to_stop() const {
  return wants_to_leave() || tools_.client.regroup_requested();
}

}  // namespace antdt::trainer
