#include "trainer/loop/ps_train_phase.h"

#include <algorithm>
#include <thread>

namespace antdt::trainer {
namespace {

// How long a batch waits for records that are on their way before it is made of
// fewer, and how long a worker without a share waits for another plan.
constexpr Duration kDataPatience = std::chrono::milliseconds(50);
constexpr Duration kPlanWait = std::chrono::milliseconds(20);
// A step may be on its way to some servers and not to others, but for those who
// are waited for. After so many pulls the push is late, which is harmless.
constexpr int kMostPulls = 4;

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
  if (!state_.first_step) state_.first_step = tools_.clock.now();
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
  take_up_plan();
  client::BatchTimes times;
  ANTDT_TRY(const data::Batch batch, next_batch(times));
  if (batch.status == client::TakeStatus::kEnd) return finish();
  if (batch.status == client::TakeStatus::kWait) {
    ANTDT_RETURN_IF_ERROR(say_idle());
    return std::nullopt;
  }
  ANTDT_TRY(const bool applied, train(batch.examples, times));
  if (applied) hold_.update(place_, state_.share.samples());
  return std::nullopt;
}

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

Result<data::Batch> PsTrainPhase::next_batch(client::BatchTimes& times) {
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
  times.data = tools_.clock.now() - began;
  return batch;
}

Result<bool> PsTrainPhase::train(const data::Examples& batch, client::BatchTimes& times) {
  std::vector<ps::TableKeys> rows;
  {
    const Timed computing(tools_.account, TimeUse::kCompute);
    rows = tools_.model.rows_of(batch);
  }
  while (true) {
    Attempt attempt;
    ANTDT_RETURN_IF_ERROR(pull(rows, attempt, times));
    ANTDT_RETURN_IF_ERROR(compute(batch, rows, attempt, times));
    bool in_model = !(attempt.computed.sums.weight > 0);  // then there is nothing to push
    if (!in_model) {
      ANTDT_TRY(in_model, push(attempt, batch.count, times));
    }
    if (in_model) {
      conclude(batch.count, attempt.computed.sums, times);
      return true;
    }
    if (tools_.guard.over() || tools_.wants_to_leave()) return false;
  }
}

std::uint64_t PsTrainPhase::pull_clock() const {
  switch (state_.consistency) {
    case ps::Consistency::kBarrier:
      return state_.version;
    case ps::Consistency::kBounded:
      return state_.pushes - std::min(state_.pushes, state_.staleness);
    case ps::Consistency::kUnbounded:
      return 0;
  }
  return 0;
}

Status PsTrainPhase::pull(const std::vector<ps::TableKeys>& rows, Attempt& attempt,
                          client::BatchTimes& times) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  for (int i = 0; i < kMostPulls; ++i) {
    ANTDT_TRY(attempt.pulled, link_.pull(rows, pull_clock()));
    const auto [oldest, newest] = std::ranges::minmax(attempt.pulled.versions);
    attempt.version = oldest;
    state_.version = std::max(state_.version, newest);
    if (oldest == newest || !barrier()) break;
  }
  times.wait += tools_.clock.now() - began;
  return {};
}

Status PsTrainPhase::compute(const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
                             Attempt& attempt, client::BatchTimes& times) {
  const Timed computing(tools_.account, TimeUse::kCompute);
  const MonoTime began = tools_.clock.now();
  ANTDT_TRY(attempt.computed, tools_.model.compute(batch, rows, attempt.pulled.values));
  const MonoTime now = tools_.clock.now();
  const Duration delay = tools_.injection.delay(now - *state_.first_step, now - began, batch.count);
  if (delay > Duration{}) std::this_thread::sleep_for(delay);
  // Of the attempt that counts: what came before says nothing of this worker's speed.
  times.compute = tools_.clock.now() - began;
  return {};
}

Result<bool> PsTrainPhase::push(const Attempt& attempt, std::uint64_t records,
                                client::BatchTimes& times) {
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  const MonoTime began = tools_.clock.now();
  wire::PsCommit commit;
  // Who was away goes on with the others: nobody waits for it to catch up.
  const std::uint64_t others = barrier() ? 0 : attempt.pulled.clock;
  commit.number = state_.pushes = std::max(state_.pushes, others) + 1;
  commit.version = attempt.version;
  commit.phase = start_.phase;
  commit.from = place_;
  commit.to = place_ + records;
  commit.weight = attempt.computed.sums.weight;
  ANTDT_TRY(const wire::PsDecided decided,
            link_.push(attempt.computed.gradients, attempt.pulled, commit));
  idle_ = false;
  // Without a barrier a home knows of its own updates only.
  if (barrier()) state_.version = std::max(state_.version, decided.version);
  times.wait += tools_.clock.now() - began;
  return decided.status == "applied";
}

void PsTrainPhase::conclude(std::uint64_t records, const BatchSums& sums,
                            client::BatchTimes times) {
  place_ += records;
  loss_sum_ += sums.loss;
  weight_sum_ += sums.weight;
  tools_.client.commit(place_);
  times.samples = records;
  times.counts = !plan_changed_ && records == state_.share.samples();
  plan_changed_ = false;
  tools_.client.report(times);
  tools_.client.time_account(tools_.account.seconds());
  send_progress(false);
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
