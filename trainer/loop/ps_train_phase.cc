#include "trainer/loop/ps_train_phase.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "trainer/loop/habits.h"

namespace antdt::trainer {
namespace {

// How long a worker without a share waits for another plan.
constexpr Duration kPlanWait = std::chrono::milliseconds(20);
// A step may be on its way to some servers and not to others, but for those who
// are waited for. After so many pulls the push is late, which is harmless.
constexpr int kMostPulls = 4;
// Pushes that are said and not decided. With two, one is committed while the other is
// staged and a batch is computed; more would make rows staler and hide nothing else.
constexpr std::size_t kMostUnderWay = 2;
constexpr std::string_view kApplied = "applied";

}  // namespace

PsTrainPhase::PsTrainPhase(PsTools& tools, PsState& state, ps::WorkerLink& link,
                           const wire::PhaseStart& start)
    : tools_(tools),
      state_(state),
      link_(link),
      start_(start),
      hold_(tools.client, tools.clock, state.share.samples()) {}

Result<PhaseEnd> PsTrainPhase::run() {
  const Timed other(tools_.account, TimeUse::kOther);
  tools_.injected.training_began();
  auto end = work();
  if (end || end.error().kind != ErrorKind::kAborted) return end;
  breakage_ = end.error().message;
  return tools_.wants_to_leave() ? PhaseEnd::kLeave : PhaseEnd::kOver;
}

Result<PhaseEnd> PsTrainPhase::work() {
  while (!tools_.guard.over()) {
    if (tools_.wants_to_leave()) return leave();
    ANTDT_TRY(const auto end, turn());
    if (end) return *end;
  }
  breakage_ = "the servers are gone";
  return PhaseEnd::kOver;
}

Result<std::optional<PhaseEnd>> PsTrainPhase::turn() {
  if (!next_) {
    ANTDT_TRY(const client::TakeStatus status, next_batch());
    if (status == client::TakeStatus::kEnd) return finish();
    if (status == client::TakeStatus::kWait) {
      ANTDT_RETURN_IF_ERROR(say_idle());
      return std::nullopt;
    }
  }
  Batch batch = std::move(*next_);
  next_.reset();
  ANTDT_RETURN_IF_ERROR(train(std::move(batch)));
  return std::nullopt;
}

// ------------------------------------------------------------------- its records

// At once and alone: gradients are divided by the weight of what was applied, so
// nobody has to switch with anybody.
void PsTrainPhase::take_up_plan() {
  const PlanVersion newest = tools_.client.held_plan();
  if (newest == state_.share.version) return;
  const auto plan = tools_.client.plan(newest);
  if (!plan) return;
  state_.share = share_of(*plan, tools_.client.member().worker);
  plan_changed_ = true;
  hold_.set(place_, state_.share.samples());
}

Result<client::TakeStatus> PsTrainPhase::next_batch() {
  take_up_plan();
  if (auto examples = tools_.prefetcher.next_at_hand(state_.share.samples())) {
    begin(std::move(*examples), Duration{});
    return client::TakeStatus::kData;
  }
  // What is under way may be all that the end of the phase waits for.
  ANTDT_RETURN_IF_ERROR(conclude_until(0));
  Duration reading{};
  ANTDT_TRY(data::Batch batch, wait_for_records(reading));
  if (batch.status == client::TakeStatus::kData) begin(std::move(batch.examples), reading);
  return batch.status;
}

Result<data::Batch> PsTrainPhase::wait_for_records(Duration& took) {
  const MonoTime began = tools_.clock.now();
  const std::uint64_t share = state_.share.samples();
  if (idle_ || share == 0) {
    const Timed waiting(tools_.account, TimeUse::kShardWait);
    if (share > 0) return tools_.prefetcher.next(share, kDataPatience);
    std::this_thread::sleep_for(kPlanWait);
    return tools_.prefetcher.next(1, Duration{});
  }
  const Timed reading(tools_.account, TimeUse::kData);
  auto batch = tools_.prefetcher.next(share, kDataPatience);
  took = tools_.clock.now() - began;
  return batch;
}

void PsTrainPhase::begin(data::Examples examples, Duration reading) {
  const Timed computing(tools_.account, TimeUse::kCompute);
  Batch& batch = next_.emplace();
  const MonoTime began = tools_.clock.now();
  tools_.injected.after_data(began - reading, state_.pushes);
  batch.times.data = reading + (tools_.clock.now() - began);
  batch.times.samples = examples.count;
  batch.times.counts = !plan_changed_ && examples.count == state_.share.samples();
  plan_changed_ = false;
  batch.rows = tools_.model.rows_of(examples);
  batch.examples = std::move(examples);
}

Status PsTrainPhase::look_ahead(std::uint64_t more) {
  if (!next_) {
    take_up_plan();
    auto examples = tools_.prefetcher.next_at_hand(state_.share.samples());
    if (!examples) return {};
    begin(std::move(*examples), Duration{});
  }
  const Timed saying(tools_.account, TimeUse::kCollectiveWait);
  ANTDT_TRY(next_->pull, link_.say_pull(next_->rows, pull_clock(more)));
  return {};
}

void PsTrainPhase::forget_pull_of_next() {
  if (!next_ || !next_->pull) return;
  link_.forget(*next_->pull);
  next_->pull.reset();
}

// ----------------------------------------------------------------------- a batch

Status PsTrainPhase::train(Batch batch) {
  Attempt attempt;
  ANTDT_RETURN_IF_ERROR(pull(batch, attempt));
  if (!pull_waits_for_push()) ANTDT_RETURN_IF_ERROR(look_ahead(1));
  ANTDT_RETURN_IF_ERROR(compute(batch, attempt));
  ANTDT_TRY(const bool place_is_known, is_given_back());
  if (!place_is_known) return {};
  const BatchSums sums = attempt.computed.sums;
  const bool pushes = sums.weight > 0;
  if (pushes) ANTDT_RETURN_IF_ERROR(push(batch, attempt));
  if (pull_waits_for_push()) {
    ANTDT_RETURN_IF_ERROR(look_ahead(pushes && barrier() ? 1 : 0));
  }
  bool in_model = !pushes;
  if (pushes && barrier()) {
    ANTDT_TRY(in_model, decide_step(batch.times));
    if (!in_model) {
      give_back(batch.times);
      return {};
    }
  }
  under_way_.push_back({batch.times, sums, in_model});
  pushed_place_ += batch.times.samples;
  return conclude_decided();
}

// The pull behind it waited for a step that is over. How long it took says how fast this
// worker is all the same: of one that is always late nothing else does.
void PsTrainPhase::give_back(client::BatchTimes& times) {
  times.in_model = false;
  times.hop = link_.take_hop();
  tools_.client.report(times);
  tools_.client.give_back(times.samples);
  forget_pull_of_next();
}

Result<bool> PsTrainPhase::is_given_back() {
  const Timed waiting(tools_.account, TimeUse::kShardWait);
  while (true) {
    ANTDT_TRY(const bool answered, tools_.client.given_back(kDataPatience));
    if (answered) return true;
    if (tools_.wants_to_leave()) return false;
    ANTDT_RETURN_IF_ERROR(link_.advance());
  }
}

bool PsTrainPhase::pull_waits_for_push() const {
  return barrier() || (state_.consistency == ps::Consistency::kBounded && state_.staleness == 0);
}

std::uint64_t PsTrainPhase::pull_clock(std::uint64_t more) const {
  switch (state_.consistency) {
    case ps::Consistency::kBarrier:
      return state_.version + more;
    case ps::Consistency::kBounded: {
      const std::uint64_t pushes = state_.pushes + more;
      return pushes - std::min(pushes, state_.staleness);
    }
    case ps::Consistency::kUnbounded:
      return 0;
  }
  return 0;
}

Status PsTrainPhase::pull(Batch& batch, Attempt& attempt) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  ANTDT_RETURN_IF_ERROR(link_.advance());
  for (int i = 0; i < kMostPulls; ++i) {
    if (!batch.pull) {
      ANTDT_TRY(batch.pull, link_.say_pull(batch.rows, pull_clock(0)));
    }
    while (!link_.is_here(*batch.pull)) {
      ANTDT_RETURN_IF_ERROR(link_.wait());
      ANTDT_RETURN_IF_ERROR(conclude_decided());
    }
    ANTDT_TRY(attempt.pulled, link_.take(*batch.pull));
    batch.pull.reset();
    const auto [oldest, newest] = std::ranges::minmax(attempt.pulled.versions);
    attempt.version = oldest;
    state_.version = std::max(state_.version, newest);
    if (oldest == newest || !barrier()) break;
  }
  // Who was away goes on with the others: nobody waits for it to catch up.
  if (!barrier()) state_.pushes = std::max(state_.pushes, attempt.pulled.clock);
  batch.times.wait += tools_.clock.now() - began;
  return {};
}

Status PsTrainPhase::compute(Batch& batch, Attempt& attempt) {
  const Timed computing(tools_.account, TimeUse::kCompute);
  // What has come meanwhile need not wait for the end of this.
  ANTDT_RETURN_IF_ERROR(link_.advance());
  const MonoTime began = tools_.clock.now();
  ANTDT_TRY(attempt.computed,
            tools_.model.compute(batch.examples, batch.rows, attempt.pulled.values));
  tools_.injected.after_compute(began, state_.pushes, batch.examples.count);
  batch.times.compute = tools_.clock.now() - began;
  return link_.advance();
}

Status PsTrainPhase::push(Batch& batch, const Attempt& attempt) {
  wire::PsCommit commit;
  commit.number = ++state_.pushes;
  commit.version = attempt.version;
  commit.phase = start_.phase;
  commit.from = pushed_place_;
  commit.to = pushed_place_ + batch.times.samples;
  commit.weight = attempt.computed.sums.weight;
  idle_ = false;
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  ANTDT_RETURN_IF_ERROR(conclude_until(kMostUnderWay - 1));
  auto said = link_.say_push(attempt.computed.gradients, attempt.pulled, commit);
  batch.times.wait += tools_.clock.now() - began;
  return said;
}

Result<bool> PsTrainPhase::decide_step(client::BatchTimes& times) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  auto decided = link_.take_decision();
  for (; !decided; decided = link_.take_decision()) ANTDT_RETURN_IF_ERROR(link_.wait());
  state_.version = std::max(state_.version, decided->version);
  times.wait += tools_.clock.now() - began;
  return decided->status == kApplied;
}

// ------------------------------------------------------------------ what is done

Status PsTrainPhase::conclude_decided() {
  while (!under_way_.empty()) {
    if (!under_way_.front().in_model) {
      const auto decided = link_.take_decision();
      if (!decided) return {};
      if (decided->status != kApplied) {
        return fail(ErrorKind::kCorrupt, "push {} is '{}', and without a barrier none can be",
                    decided->number, decided->status);
      }
    }
    conclude(under_way_.front());
    under_way_.pop_front();
  }
  return {};
}

Status PsTrainPhase::conclude_until(std::size_t under_way) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  ANTDT_RETURN_IF_ERROR(link_.advance());
  ANTDT_RETURN_IF_ERROR(conclude_decided());
  while (under_way_.size() > under_way) {
    ANTDT_RETURN_IF_ERROR(link_.wait());
    ANTDT_RETURN_IF_ERROR(conclude_decided());
  }
  return {};
}

void PsTrainPhase::conclude(UnderWay& batch) {
  batch.times.hop = link_.take_hop();
  place_ += batch.times.samples;
  loss_sum_ += batch.sums.loss;
  weight_sum_ += batch.sums.weight;
  tools_.client.commit(place_);
  tools_.client.report(batch.times);
  tools_.client.time_account(tools_.account.seconds());
  send_progress(false);
  hold_.update(place_, state_.share.samples());
}

Status PsTrainPhase::say_idle() {
  if (idle_) return {};
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  ANTDT_TRY(const std::uint64_t version, link_.idle());
  state_.version = std::max(state_.version, version);
  idle_ = true;
  return {};
}

// Every record is applied: who says it now hears of the last step.
Result<PhaseEnd> PsTrainPhase::finish() {
  idle_ = false;
  ANTDT_RETURN_IF_ERROR(say_idle());
  send_progress(true);
  return PhaseEnd::kDone;
}

// The place goes first: it must be known whether or not the servers answer.
Result<PhaseEnd> PsTrainPhase::leave() {
  send_progress(false);
  // What is computed is finished; what is not goes to others.
  forget_pull_of_next();
  next_.reset();
  ANTDT_RETURN_IF_ERROR(conclude_until(0));
  ANTDT_RETURN_IF_ERROR(say_idle());
  return PhaseEnd::kLeave;
}

void PsTrainPhase::send_progress(bool done) {
  wire::Progress progress;
  progress.phase = start_.phase;
  progress.step = Step{state_.version};
  progress.place = place_;
  progress.samples = place_;
  progress.loss_sum = loss_sum_;
  progress.weight_sum = weight_sum_;
  progress.plan = state_.share.version;
  progress.done = done;
  tools_.client.progress(progress);
}

}  // namespace antdt::trainer
