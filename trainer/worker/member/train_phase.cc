#include "trainer/worker/member/train_phase.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "trainer/worker/habits.h"

namespace antdt::worker {
namespace {

// How long a group without any records waits before it asks again.
constexpr Duration kIdleWait = std::chrono::milliseconds(20);

}  // namespace

TrainPhase::TrainPhase(MemberState& member, wire::PhaseStart start, MonoTime now)
    : member_(member),
      start_(std::move(start)),
      remaining_(start_.records - std::min(start_.committed, start_.records)),
      steps_told_(now),
      hop_timer_(now) {
  const auto members = static_cast<std::uint32_t>(member.training.members.size());
  ANTDT_CHECK(member.domains.size() == members, "{} domains of {} members", member.domains.size(),
              members);
  member.exchange.begin(member.rank, member.domains);
  member.exchange.plan_threshold(member.training.share.threshold);
}

void TrainPhase::expect(State state) const {
  ANTDT_CHECK(state_ == state, "phase {} at {}: an answer to what was not asked (state {}, not {})",
              start_.phase, member_.training.step, static_cast<int>(state_),
              static_cast<int>(state));
}

// From: nothing. To: computing; gathering, if no record is left.
TrainPhase::End TrainPhase::begin(MonoTime now, Effects& out) {
  out.emplace_back(Send{client::BeginPhase{start_.phase}});
  out.emplace_back(StartReading{Data::kTrain});
  out.emplace_back(Send{client::SetHold{hold_.begin(member_.training.share.samples(), now)}});
  return next_step(now, out);
}

// ------------------------------------------------------------------- a step

// To: exchanging; see begin_step if nothing precedes computing, and empty_step if all records are
// counted or a checkpoint must be written first; ended, if the program ends the training.
TrainPhase::End TrainPhase::next_step(MonoTime now, Effects& out) {
  const Share& share = member_.training.share;
  if (const auto hold = hold_.update(place_, share.samples(), now)) {
    out.emplace_back(Send{client::SetHold{*hold}});
  }
  if (complete()) {
    last_step(Last::kComplete, now, out);
    return {};
  }
  if (!member_.heard.ends.empty()) return end_training(out);
  if (checkpoint_due()) {
    empty_step(now, out);
    return {};
  }
  own_ = {};
  StepExchange::Course course = member_.exchange.course(member_.training.step);
  step_ = std::move(course.begin);
  if (!course.first) {
    begin_step(now, out);
    return {};
  }
  state_ = State::kExchanging;
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  const auto* const updates = std::get_if<ExchangeUpdates>(&*course.first);
  own_.visit = updates != nullptr && updates->visits;
  std::visit([&](auto& first) { out.emplace_back(std::move(first)); }, *course.first);
  return {};
}

// From: between two steps; computing, reducing, if the program did nothing for the step. To: ended.
// The others cannot complete another step without this member, and the job daemon opens no phase of
// training any more when it has heard of it.
TrainPhase::End TrainPhase::end_training(Effects& out) {
  state_ = State::kEnded;
  out.emplace_back(DropStep{});
  return PhaseEnd::kEnded;
}

// The program may have been told only then that the phase begins.
TrainPhase::End TrainPhase::on(const TrainingEnded&, MonoTime, Effects& out) {
  ANTDT_CHECK(may_end() && !member_.heard.ends.empty(),
              "phase {}: the training ends in a step for which something is computed",
              start_.phase);
  return end_training(out);
}

TrainPhase::End TrainPhase::on(const Mixed&, MonoTime now, Effects& out) {
  return exchanged(now, out);
}

// The members of a domain send the same message, which counts once.
TrainPhase::End TrainPhase::on(const UpdatesExchanged& input, MonoTime now, Effects& out) {
  if (!step_.sums_with.empty() && step_.sums_with.front() == member_.rank) {
    own_.slot.sent_bytes = input.sent_bytes;
    own_.slot.dense_bytes = input.dense_bytes;
  }
  return exchanged(now, out);
}

// From: exchanging. To: see begin_step.
TrainPhase::End TrainPhase::exchanged(MonoTime now, Effects& out) {
  expect(State::kExchanging);
  own_.exchanged = now - began_;
  begin_step(now, out);
  return {};
}

// To: computing; see reduce if the plan gives this member no share.
void TrainPhase::begin_step(MonoTime now, Effects& out) {
  const Share& share = member_.training.share;
  out.emplace_back(step_);
  own_.shared = member_.sharing && member_.sharing->shares;
  if (own_.shared) return begin_shared_step(now, out);
  share.samples() > 0 ? compute(out) : reduce(now, out);
}

void TrainPhase::compute(Effects& out) {
  const Share& share = member_.training.share;
  state_ = State::kComputing;
  const bool last = own_.micro_batches + 1 == share.accumulation;
  out.emplace_back(SpendTime{TimeUse::kData});
  out.emplace_back(
      ComputeMicroBatch{member_.training.step, share.micro_batch, kDataPatience, last});
}

// From: computing. To: computing, until the share is done or records run out; then reducing.
TrainPhase::End TrainPhase::on(const MicroBatchComputed& input, MonoTime now, Effects& out) {
  expect(State::kComputing);
  if (own_.shared) return run_computed(input, now, out);
  own_.times.data += input.data;
  own_.times.wait += input.rows;
  own_.slot.has_data = input.status == client::TakeStatus::kData;
  if (own_.slot.has_data) {
    own_.times.compute += input.compute;
    tell_skips(place_ + own_.slot.records, input.skipped, out);
    own_.slot.records += input.records;
    own_.computed += input.records;
    own_.slot.weight += input.weight;
    own_.slot.loss += input.loss;
    own_.slot.visit += input.visit;
  }
  const bool more = ++own_.micro_batches < member_.training.share.accumulation;
  own_.slot.has_data&& more ? compute(out) : reduce(now, out);
  return {};
}

// At once, so that the answer comes while the gradients are summed.
void TrainPhase::tell_skips(std::uint64_t first, const std::vector<SkippedRecord>& skipped,
                            Effects& out) {
  if (skipped.empty()) return;
  client::Skip told;
  for (const SkippedRecord& record : skipped) {
    const std::uint64_t at = first + record.index;
    auto& ranges = told.records;
    const bool follows =
        !ranges.empty() && ranges.back().to == at && ranges.back().reason == record.reason;
    follows ? void(++ranges.back().to) : void(ranges.push_back({at, at + 1, record.reason}));
  }
  own_.skips = true;
  out.emplace_back(Send{std::move(told)});
}

// To: sending part, if rows are on servers; else see sum.
void TrainPhase::reduce(MonoTime now, Effects& out) {
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  member_.stages_rows ? send_part(out) : sum(now, out);
}

// The servers take it while the gradients are summed.
void TrainPhase::send_part(Effects& out) {
  state_ = State::kSendingPart;
  out.emplace_back(SendPart{});
}

// From: sending part. To: see sum; staging, if the step has no records.
TrainPhase::End TrainPhase::on(const PartSent&, MonoTime now, Effects& out) {
  expect(State::kSendingPart);
  own_.empty ? await_staged(now, out) : sum(now, out);
  return {};
}

// To: reducing; see computed if gradients stay with the members.
void TrainPhase::sum(MonoTime now, Effects& out) {
  if (step_.local) return computed(now, out);
  state_ = State::kReducing;
  out.emplace_back(Reduce{});
}

// From: reducing. To: see computed.
TrainPhase::End TrainPhase::on(const Reduced&, MonoTime now, Effects& out) {
  expect(State::kReducing);
  computed(now, out);
  return {};
}

// To: see await_staged; telling skips, if there are any in this step.
void TrainPhase::computed(MonoTime now, Effects& out) {
  if (!own_.skips) return await_staged(now, out);
  state_ = State::kTellingSkips;
  out.emplace_back(AwaitSkipsTold{});
}

// From: telling skips. To: see await_staged.
TrainPhase::End TrainPhase::on(const SkipsTold&, MonoTime now, Effects& out) {
  expect(State::kTellingSkips);
  await_staged(now, out);
  return {};
}

// To: gathering; staging, if rows are on servers.
void TrainPhase::await_staged(MonoTime now, Effects& out) {
  if (!member_.stages_rows) return gather(now, out);
  state_ = State::kStaging;
  out.emplace_back(AwaitPartStaged{});
}

// From: staging. To: gathering.
TrainPhase::End TrainPhase::on(const PartStaged&, MonoTime now, Effects& out) {
  expect(State::kStaging);
  gather(now, out);
  return {};
}

// The last step with records is stable when one more step has completed.
void TrainPhase::last_step(Last why, MonoTime now, Effects& out) {
  last_ = why;
  empty_step(now, out);
}

// To: consolidating, if replicas may differ; else sending part, if rows are on servers, or
// gathering.
void TrainPhase::empty_step(MonoTime now, Effects& out) {
  own_ = {};
  own_.empty = true;
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  if (member_.stages_rows) return send_part(out);
  if (!replicas_may_differ()) return gather(now, out);
  state_ = State::kConsolidating;
  const auto members = static_cast<std::uint32_t>(member_.training.members.size());
  const auto all = sync::one_group(members).front();
  out.emplace_back(member_.exchange.consolidation(all, all));
}

// From: consolidating. To: gathering.
TrainPhase::End TrainPhase::on(const Consolidated&, MonoTime now, Effects& out) {
  expect(State::kConsolidating);
  member_.exchange.consolidated();
  member_.training.consolidated = member_.training.settled;
  gather(now, out);
  return {};
}

void TrainPhase::gather(MonoTime now, Effects& out) {
  state_ = State::kGathering;
  own_.slot.place = place_ + own_.slot.records;
  own_.slot.plan = std::max(member_.heard.job.plan, member_.training.share.version);
  own_.slot.checkpoint = checkpoint_wanted();
  own_.slot.leaving = member_.wants_to_stop();
  own_.slot.wants_hop = hop_timer_.wants(now);
  say_kind();
  out.emplace_back(GatherSlots{own_.slot});
}

// From: gathering. To: applying, if the step has records and every member could compute; otherwise
// the step is concluded without it.
TrainPhase::End TrainPhase::on(const SlotsGathered& input, MonoTime now, Effects& out) {
  expect(State::kGathering);
  agreed_ = agree(input.slots);
  const Duration waited = now - began_ + own_.exchanged;
  own_.times.wait += waited;
  hop_timer_.waited(waited, now);
  if (!agreed_.applies()) {
    out.emplace_back(DropStep{});
    return conclude(now, out);
  }
  state_ = State::kApplying;
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCompute});
  out.emplace_back(Apply{member_.exchange.divisor(agreed_.weight)});
  return {};
}

// From: applying. To: what follows a concluded step.
TrainPhase::End TrainPhase::on(const Applied&, MonoTime now, Effects& out) {
  expect(State::kApplying);
  own_.times.compute += now - began_;
  return conclude(now, out);
}

// From: gathering, applying. To: switching plan, if all members hold a newer one; else see go_on.
TrainPhase::End TrainPhase::conclude(MonoTime now, Effects& out) {
  out.emplace_back(SpendTime{TimeUse::kOther});
  count_step();
  report(out);
  compare_kinds(now);
  plan_changed_ = false;
  if (checkpoint_due() && !replicas_may_differ()) write_checkpoint(out);
  if (agreed_.plan > member_.training.share.version) {
    state_ = State::kSwitchingPlan;
    out.emplace_back(TakePlan{agreed_.plan});
    return {};
  }
  return conclude_rest(now, out);
}

void TrainPhase::count_step() {
  TrainingState& state = member_.training;
  StepExchange& exchange = member_.exchange;
  if (exchange.concluded(state.step, agreed_)) state.consolidated = {};
  state.step = state.step.next();
  state.weight = agreed_.applies() ? agreed_.weight : 0;
  state.rate = state.share.rate;
  state.cut = 0;
  state.pristine = false;
  if (state.phase != start_.phase) {  // its first step; not earlier, see TrainingState
    state.phase = start_.phase;
    state.loss_sum = state.weight_sum = 0;
  }
  state.loss_sum += agreed_.loss;
  state.weight_sum += agreed_.weight;
  state.places.clear();
  for (std::size_t rank = 0; rank < agreed_.places.size() && rank < state.members.size(); ++rank) {
    state.places.push_back({state.members[rank], agreed_.places[rank]});
  }
  if (state.log.history().generation == member_.heard.job.recorded_of) {
    state.log.forget(member_.heard.job.recorded);
  }
  state.log.add(state.step, start_.phase, agreed_.places, agreed_.taken);
  stable_place_ = exchange.committable()[member_.rank];
  place_ = own_.slot.place;
  counted_ += agreed_.records;
}

// From: switching plan. To: see go_on.
TrainPhase::End TrainPhase::on(const PlanTaken& input, MonoTime now, Effects& out) {
  expect(State::kSwitchingPlan);
  ANTDT_CHECK(input.plan.version == agreed_.plan, "plan {} was agreed on, and plan {} is taken",
              agreed_.plan, input.plan.version);
  take_up(input.plan, now, out);
  return conclude_rest(now, out);
}

void TrainPhase::take_up(const wire::Plan& plan, MonoTime now, Effects& out) {
  Share& share = member_.training.share;
  share = share_of(plan, member_.self);
  plan_changed_ = true;
  member_.exchange.plan_threshold(share.threshold);
  out.emplace_back(SetRate{plan.rate});
  out.emplace_back(Send{client::SetHold{hold_.set(place_, share.samples(), now)}});
}

TrainPhase::End TrainPhase::conclude_rest(MonoTime now, Effects& out) {
  out.emplace_back(Send{client::Commit{stable_place_, {}}});
  send_progress(false, now, out);
  return last_ == Last::kNot ? go_on(now, out) : end(now, out);
}

// ------------------------------------------------------------- between two steps

// From: a concluded step. To: gathering, for the last time, if a member leaves; measuring hop, if
// all members want it; else see await_records.
TrainPhase::End TrainPhase::go_on(MonoTime now, Effects& out) {
  if (agreed_.any_leaving) {
    last_step(Last::kStoppedTogether, now, out);
    return {};
  }
  if (!agreed_.measure_hop) return await_records(now, out);
  state_ = State::kMeasuringHop;
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  out.emplace_back(MeasureHop{});
  return {};
}

// From: measuring hop. To: see await_records.
TrainPhase::End TrainPhase::on(const HopMeasured& input, MonoTime now, Effects& out) {
  expect(State::kMeasuringHop);
  undisturbed_ = false;
  hop_ = input.time;
  hop_timer_.measured(began_, now);
  return await_records(now, out);
}

// To: awaiting records, if no member had any; else the next step.
TrainPhase::End TrainPhase::await_records(MonoTime now, Effects& out) {
  if (agreed_.records == 0 && !own_.empty) {
    state_ = State::kAwaitingRecords;
    out.emplace_back(SpendTime{TimeUse::kShardWait});
    out.emplace_back(AwaitRecords{kIdleWait});
    return {};
  }
  return next_step(now, out);
}

// From: awaiting records. To: the next step.
TrainPhase::End TrainPhase::on(const RecordsAwaited&, MonoTime now, Effects& out) {
  expect(State::kAwaitingRecords);
  undisturbed_ = false;
  return next_step(now, out);
}

// From: the last step, concluded. To: ended.
TrainPhase::End TrainPhase::end(MonoTime now, Effects& out) {
  state_ = State::kEnded;
  ANTDT_CHECK(stable_place_ == place_, "phase {} ends at place {}, and {} may be committed",
              start_.phase, place_, stable_place_);
  out.emplace_back(Send{client::Commit{stable_place_, {}}});
  steps_told_ = now - kTellSteps;
  send_progress(complete(), now, out);
  if (member_.wants_to_leave()) return PhaseEnd::kLeave;
  if (complete()) return PhaseEnd::kDone;
  breakage_ = "its members stopped together";
  return PhaseEnd::kOver;
}

// From: any operation that needs the others. To: ended.
void TrainPhase::broke(std::string why, Effects& out) {
  const bool pulls = member_.stages_rows && state_ == State::kComputing;
  ANTDT_CHECK(pulls || state_ == State::kExchanging || state_ == State::kConsolidating ||
                  state_ == State::kAsking || state_ == State::kSendingPart ||
                  state_ == State::kReducing || state_ == State::kTellingSkips ||
                  state_ == State::kStaging || state_ == State::kGathering ||
                  state_ == State::kMeasuringHop,
              "phase {}: a collective broke that was not in use: {}", start_.phase, why);
  // The others may have begun to sum.
  const bool computed = state_ == State::kSendingPart && !own_.empty;
  if (state_ == State::kComputing || computed) out.emplace_back(AbandonStep{});
  state_ = State::kEnded;
  out.emplace_back(DropStep{});
  breakage_ = std::move(why);
}

void TrainPhase::check_invariants() const {
  ANTDT_CHECK(stable_place_ <= place_, "phase {}: place {} is stable before place {} is reached",
              start_.phase, stable_place_, place_);
  ANTDT_CHECK(state_ != State::kApplying || agreed_.applies(),
              "phase {}: a step without records is applied", start_.phase);
  ANTDT_CHECK((state_ == State::kEnded) || last_ == Last::kNot || own_.slot.records == 0,
              "phase {}: the last step has {} records", start_.phase, own_.slot.records);
}

}  // namespace antdt::worker
