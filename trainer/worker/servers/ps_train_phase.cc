#include "trainer/worker/servers/ps_train_phase.h"

#include <algorithm>
#include <string_view>

#include "core/check.h"
#include "trainer/worker/habits.h"

namespace antdt::worker::ps_worker {
namespace {

// How long a worker without a share waits for another plan.
constexpr Duration kPlanWait = std::chrono::milliseconds(20);
// A step may have reached some servers and not others, unless this worker is waited for. After this
// many pulls the push is late, which is harmless.
constexpr int kMostPulls = 4;
// How many pushes may be undecided. With two, one is committed while the other is staged and a
// batch is computed. More would make rows staler without hiding more time.
constexpr std::size_t kMostUnderWay = 2;

}  // namespace

PsTrainPhase::PsTrainPhase(PsState& worker, wire::PhaseStart start)
    : worker_(worker),
      start_(std::move(start)),
      account_(worker_, start_.phase),
      next_pull_(worker_) {}

PhaseEnd PsTrainPhase::ended(PhaseEnd end) {
  at_ = At::kEnded;
  return end;
}

// From: nothing. To: taking.
PsTrainPhase::End PsTrainPhase::begin(MonoTime now, Effects& out) {
  out.emplace_back(Send{client::BeginPhase{start_.phase}});
  out.emplace_back(StartReading{Data::kTrain});
  account_.begin(now, out);
  return turn(now, out);
}

// From: any, when a batch is finished. To: taking; awaiting rows, if the next batch is there;
// leaving; ended.
PsTrainPhase::End PsTrainPhase::turn(MonoTime now, Effects& out) {
  if (worker_.heard.over) {
    breakage_ = "the servers are gone";
    return ended(PhaseEnd::kOver);
  }
  if (worker_.heard.wants_to_leave()) return leave(now, out);
  if (next_) return await_rows(now, out);
  return take(At::kTaking, now, out);
}

// To: ended.
PhaseEnd PsTrainPhase::lost(std::string why) {
  breakage_ = std::move(why);
  return ended(worker_.heard.wants_to_leave() ? PhaseEnd::kLeave : PhaseEnd::kOver);
}

// ------------------------------------------------------------------- its records

// A worker takes its plan up at once and without the others, because gradients are divided by the
// weight of what was applied.
void PsTrainPhase::take_up_plan(MonoTime now, Effects& out) {
  if (worker_.planned.version == worker_.share.version) return;
  worker_.share = worker_.planned;
  plan_changed_ = true;
  account_.take_up_share(now, out);
}

// To: taking, looking ahead, looking behind.
PsTrainPhase::End PsTrainPhase::take(At at, MonoTime now, Effects& out) {
  take_up_plan(now, out);
  at_ = at;
  out.emplace_back(SpendTime{TimeUse::kOther});
  out.emplace_back(TakeBatch{worker_.share.samples(), TakeBatch::Wait::kNot, {}, worker_.pushes});
  return {};
}

// From: taking. To: awaiting rows; concluding, if no records are there, because the end of the
// phase may wait only for pushes in progress. From: awaiting records. To: awaiting rows; finishing;
// going idle; taking, if it is idle. From: looking ahead. To: computing. From: looking behind. To:
// awaiting decision; what follows a batch.
PsTrainPhase::End PsTrainPhase::on(const BatchTaken& input, MonoTime now, Effects& out) {
  const bool has_batch = input.status == client::TakeStatus::kData;
  if (has_batch) begin_next(input);
  switch (at_) {
    case At::kTaking:
      return has_batch ? await_rows(now, out) : wait(At::kConcluding, now, out);
    case At::kAwaitingRecords:
      if (has_batch) return await_rows(now, out);
      // Every record is applied, so a worker that says idle now hears of the last step.
      if (input.status == client::TakeStatus::kEnd) return drain(At::kFinishing, now, out);
      return idle_ ? turn(now, out) : drain(At::kGoingIdle, now, out);
    case At::kLookingAhead:
      if (has_batch) next_pull_.say_early(1, out);
      return compute(out);
    case At::kLookingBehind:
      if (has_batch) next_pull_.say_early(worker_.barrier() && batch_.weight > 0 ? 1 : 0, out);
      return pushed(now, out);
    default:
      ANTDT_CHECK(false, "a batch was taken while {}", name_of_state());
  }
  return {};
}

void PsTrainPhase::begin_next(const BatchTaken& taken) {
  ANTDT_CHECK(!next_, "phase {}: a batch was taken, and one is there", start_.phase);
  next_ = Batch{};
  Batch& batch = *next_;
  batch.times.data = taken.data;
  batch.times.samples = taken.records;
  const bool is_first = std::exchange(plan_changed_, false);
  batch.times.counts = !is_first && taken.records == worker_.share.samples();
  pulls_ = 0;
}

// From: concluding. To: resting, if it has no share; else awaiting records.
PsTrainPhase::End PsTrainPhase::await_records(Effects& out) {
  const std::uint64_t share = worker_.share.samples();
  out.emplace_back(SpendTime{idle_ || share == 0 ? TimeUse::kShardWait : TimeUse::kData});
  if (share == 0) {
    at_ = At::kResting;
    out.emplace_back(AwaitRecords{kPlanWait});
    return {};
  }
  at_ = At::kAwaitingRecords;
  const auto wait = idle_ ? TakeBatch::Wait::kForRecords : TakeBatch::Wait::kForData;
  out.emplace_back(TakeBatch{share, wait, kDataPatience, worker_.pushes});
  return {};
}

// From: resting. To: awaiting records, to take those that are there already, and to see whether the
// phase is over.
PsTrainPhase::End PsTrainPhase::on(const RecordsAwaited&, MonoTime, Effects& out) {
  ANTDT_CHECK(at_ == At::kResting, "records were awaited while {}", name_of_state());
  at_ = At::kAwaitingRecords;
  out.emplace_back(TakeBatch{1, TakeBatch::Wait::kForRecords, {}, worker_.pushes});
  return {};
}

// ------------------------------------------------------------------------- rows

// To: awaiting rows, of the next batch.
PsTrainPhase::End PsTrainPhase::await_rows(MonoTime now, Effects& out) {
  at_ = At::kAwaitingRows;
  since_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  if (!next_pull_.is_said()) next_pull_.say(0, out);
  return look(now, out);
}

// From: awaiting rows. To: awaiting rows, if they are of different steps; looking ahead; computing.
PsTrainPhase::End PsTrainPhase::on(const RowsPulled& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(at_ == At::kAwaitingRows, "rows came while {}", name_of_state());
  next_pull_.answered();
  next_->version = input.oldest;
  worker_.version = std::max(worker_.version, input.newest);
  if (worker_.barrier() && input.oldest != input.newest && ++pulls_ < kMostPulls) {
    next_pull_.say(0, out);
    return look(now, out);
  }
  // A worker that was away continues with the others' numbers, so nobody waits for it to catch up.
  if (!worker_.barrier()) worker_.pushes = std::max(worker_.pushes, input.clock);
  next_->times.wait += now - since_;
  batch_ = std::move(*next_);
  next_.reset();
  out.emplace_back(BeginBatch{});
  return next_pull_.waits_for_push() ? compute(out) : take(At::kLookingAhead, now, out);
}

// ----------------------------------------------------------------------- a batch

// To: computing.
PsTrainPhase::End PsTrainPhase::compute(Effects& out) {
  at_ = At::kComputing;
  out.emplace_back(SpendTime{TimeUse::kCompute});
  out.emplace_back(ComputeBatch{worker_.pushes});
  return {};
}

// From: computing. To: awaiting given back, if a batch was late before; else making room, or what
// follows a push, if there is nothing to push.
PsTrainPhase::End PsTrainPhase::on(const BatchComputed& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(at_ == At::kComputing, "a batch was computed while {}", name_of_state());
  batch_.times.compute = input.compute;
  batch_.weight = input.weight;
  batch_.loss = input.loss;
  if (!gave_back_) return computed(now, out);
  at_ = At::kAwaitingGivenBack;
  out.emplace_back(SpendTime{TimeUse::kShardWait});
  out.emplace_back(AwaitGivenBack{kDataPatience});
  return {};
}

// From: awaiting given back. To: as above; taking, if it is to leave.
PsTrainPhase::End PsTrainPhase::on(const GivenBack& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(at_ == At::kAwaitingGivenBack, "records were given back while {}", name_of_state());
  if (input.all) {
    gave_back_ = false;
    return computed(now, out);
  }
  if (worker_.heard.wants_to_leave()) return turn(now, out);
  out.emplace_back(AwaitGivenBack{kDataPatience});
  return {};
}

PsTrainPhase::End PsTrainPhase::computed(MonoTime now, Effects& out) {
  if (batch_.weight > 0) {
    since_ = now;
    if (!worker_.shadow) return wait(At::kMakingRoom, now, out);
    worker_.shadow->trained(now);
    pull_centre_if_due(out);
    return wait(worker_.shadow->holds_up() ? At::kAwaitingCentre : At::kMakingRoom, now, out);
  }
  pushed_place_ += batch_.times.samples;
  under_way_.push_back({Fate::kApplied, batch_});
  conclude_decided(now, out);
  return after_push(now, out);
}

// From: making room. To: pushing. With a barrier, the place does not include a push that is late.
PsTrainPhase::End PsTrainPhase::push(MonoTime now, Effects& out) {
  wire::PsCommit commit;
  commit.number = ++worker_.pushes;
  commit.version = batch_.version;
  commit.phase = start_.phase;
  commit.from = pushed_place_;
  commit.to = pushed_place_ + batch_.times.samples;
  commit.weight = batch_.weight;
  idle_ = false;
  if (!worker_.barrier()) pushed_place_ = commit.to;
  under_way_.push_back({Fate::kOpen, batch_});
  at_ = At::kPushing;
  const bool exchanges = worker_.shadow && worker_.shadow->at() == ShadowChain::At::kHolding;
  if (exchanges) {
    exchange_holds_up_ = worker_.shadow->holds_up();
    if (exchange_holds_up_) worker_.shadow->waited(now - since_);
    worker_.shadow->carried(commit.number, false, now);
  }
  out.emplace_back(SayPush{commit, exchanges});
  return {};
}

// From: pushing. To: looking behind; awaiting decision; what follows a batch.
PsTrainPhase::End PsTrainPhase::on(const PushSaid&, MonoTime now, Effects& out) {
  if (at_ == At::kDraining) return drain_on(now, out);
  ANTDT_CHECK(at_ == At::kPushing, "a push was said while {}", name_of_state());
  if (!under_way_.empty()) under_way_.back().batch.times.wait += now - since_;
  return after_push(now, out);
}

PsTrainPhase::End PsTrainPhase::after_push(MonoTime now, Effects& out) {
  if (exchange_holds_up_) {
    since_ = now;
    exchange_holds_up_ = false;
    return wait(At::kAwaitingExchange, now, out);
  }
  return next_pull_.waits_for_push() ? take(At::kLookingBehind, now, out) : pushed(now, out);
}

PsTrainPhase::End PsTrainPhase::pushed(MonoTime now, Effects& out) {
  if (!worker_.barrier() || under_way_.empty()) return turn(now, out);
  since_ = now;
  return wait(At::kAwaitingDecision, now, out);
}

// From: awaiting decision. To: what follows a batch.
PsTrainPhase::End PsTrainPhase::decide(MonoTime now, Effects& out) {
  UnderWay decided = std::move(under_way_.front());
  under_way_.pop_front();
  decided.batch.times.wait += now - since_;
  if (decided.fate == Fate::kApplied) {
    pushed_place_ += decided.batch.times.samples;
    account_.conclude(decided.batch.times, decided.batch.loss, decided.batch.weight, now, out);
  } else {
    give_back(decided.batch, out);
  }
  return turn(now, out);
}

// The pull behind it waited for a step that is over. The time of the batch is reported all the
// same, because it is the only evidence of the speed of a worker that is always late.
void PsTrainPhase::give_back(Batch& batch, Effects& out) {
  batch.times.in_model = false;
  out.emplace_back(Send{batch.times});
  out.emplace_back(Send{client::GiveBack{batch.times.samples}});
  next_pull_.forget(out);
  gave_back_ = true;
}

// ------------------------------------------------------------------ servers

// To: concluding, making room, awaiting decision, leaving.
PsTrainPhase::End PsTrainPhase::wait(At at, MonoTime now, Effects& out) {
  at_ = at;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  return look(now, out);
}

// From: those, awaiting rows. To: the same, or what follows if its condition now holds.
PsTrainPhase::End PsTrainPhase::on(const ServersAnswered&, MonoTime now, Effects& out) {
  return look(now, out);
}

PsTrainPhase::End PsTrainPhase::look(MonoTime now, Effects& out) {
  switch (at_) {
    case At::kAwaitingRows:
      out.emplace_back(AwaitRows{});
      return {};
    case At::kConcluding:
      if (under_way_.empty()) return await_records(out);
      break;
    case At::kMakingRoom:
      if (under_way_.size() < kMostUnderWay) return push(now, out);
      break;
    case At::kAwaitingCentre:
      if (worker_.shadow->at() == ShadowChain::At::kHolding) {
        at_ = At::kMakingRoom;
        return look(now, out);
      }
      pull_centre_if_due(out);
      break;
    case At::kAwaitingExchange:
      if (worker_.shadow->at() == ShadowChain::At::kResting) {
        worker_.shadow->waited(now - since_);
        return pushed(now, out);
      }
      break;
    case At::kDraining:
      return drain_on(now, out);
    case At::kAwaitingDecision:
      if (under_way_.front().fate != Fate::kOpen) return decide(now, out);
      break;
    case At::kLeaving:
      if (!under_way_.empty()) break;
      if (idle_) return ended(PhaseEnd::kLeave);
      return drain(At::kLeavingIdle, now, out);
    default:
      ANTDT_CHECK(false, "servers answered while {}", name_of_state());
  }
  out.emplace_back(AwaitServers{});
  return {};
}

// With a barrier, the decision is handled in its turn.
Status PsTrainPhase::on(const PushDecided& input, MonoTime now, Effects& out) {
  if (worker_.shadow) {
    const bool is_only_exchange = worker_.shadow->drains_with(input.decided.number);
    worker_.shadow->decided(input.decided.number);
    if (is_only_exchange) return {};
    pull_centre_if_due(out);
  }
  const auto open = std::ranges::find(under_way_, Fate::kOpen, &UnderWay::fate);
  ANTDT_CHECK(open != under_way_.end(), "push {} is decided, and none is open while {}",
              input.decided.number, name_of_state());
  const bool is_applied = input.decided.status == wire::PsFate::kApplied;
  open->fate = is_applied ? Fate::kApplied : Fate::kLate;
  open->batch.times.hop = input.hop;
  if (worker_.barrier()) {
    worker_.version = std::max(worker_.version, input.decided.version);
    return {};
  }
  if (!is_applied) {
    return fail(ErrorKind::kCorrupt, "push {} is '{}', and without a barrier none can be",
                input.decided.number, input.decided.status);
  }
  conclude_decided(now, out);
  return {};
}

void PsTrainPhase::conclude_decided(MonoTime now, Effects& out) {
  while (!under_way_.empty() && under_way_.front().fate == Fate::kApplied) {
    account_.conclude(under_way_.front().batch.times, under_way_.front().batch.loss,
                      under_way_.front().batch.weight, now, out);
    under_way_.pop_front();
  }
}

// ------------------------------------------------------------------ its end

// To: going idle, finishing, leaving idle.
PsTrainPhase::End PsTrainPhase::say_idle(At at, Effects& out) {
  at_ = at;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  out.emplace_back(SayIdle{});
  return {};
}

// From: going idle. To: taking. From: finishing, leaving idle. To: ended.
PsTrainPhase::End PsTrainPhase::on(const SaidIdle& input, MonoTime now, Effects& out) {
  worker_.version = std::max(worker_.version, input.decided);
  idle_ = true;
  switch (at_) {
    case At::kGoingIdle:
      return turn(now, out);
    case At::kFinishing:
      account_.send_progress(true, out);
      return ended(PhaseEnd::kDone);
    case At::kLeavingIdle:
      return ended(PhaseEnd::kLeave);
    default:
      ANTDT_CHECK(false, "it said idle while {}", name_of_state());
  }
  return {};
}

// To: leaving. The place is sent first: it must be known whether or not the servers answer. A batch
// that was computed is finished; one that was not goes to other workers.
PsTrainPhase::End PsTrainPhase::leave(MonoTime now, Effects& out) {
  account_.send_progress(false, out);
  next_pull_.forget(out);
  next_.reset();
  return wait(At::kLeaving, now, out);
}

// ------------------------------------------------------------------- what it is

const char* PsTrainPhase::name_of_state() const {
  switch (at_) {
    case At::kTaking:
      return "taking a batch";
    case At::kConcluding:
      return "concluding";
    case At::kResting:
      return "resting";
    case At::kAwaitingRecords:
      return "awaiting records";
    case At::kGoingIdle:
      return "going idle";
    case At::kAwaitingRows:
      return "awaiting rows";
    case At::kLookingAhead:
      return "looking ahead";
    case At::kComputing:
      return "computing";
    case At::kAwaitingGivenBack:
      return "awaiting given back";
    case At::kAwaitingCentre:
      return "awaiting the centre";
    case At::kMakingRoom:
      return "making room";
    case At::kPushing:
      return "pushing";
    case At::kLookingBehind:
      return "looking behind";
    case At::kAwaitingDecision:
      return "awaiting decision";
    case At::kAwaitingExchange:
      return "awaiting the exchange";
    case At::kDraining:
      return "draining";
    case At::kFinishing:
      return "finishing";
    case At::kLeaving:
      return "leaving";
    case At::kLeavingIdle:
      return "leaving idle";
    case At::kEnded:
      return "ended";
  }
  return "";
}

void PsTrainPhase::check_invariants() const {
  ANTDT_CHECK(account_.place() <= pushed_place_,
              "phase {}: place {} is applied, and {} records are computed", start_.phase,
              account_.place(), pushed_place_);
  const auto open =
      static_cast<std::size_t>(std::ranges::count(under_way_, Fate::kOpen, &UnderWay::fate));
  ANTDT_CHECK(open <= (worker_.barrier() ? 1 : kMostUnderWay), "phase {}: {} pushes are open",
              start_.phase, open);
  ANTDT_CHECK(!gave_back_ || worker_.barrier(), "phase {}: without a barrier a push was late",
              start_.phase);
  ANTDT_CHECK(!idle_ || open == 0, "phase {}: it is idle with {} pushes open", start_.phase, open);
}

}  // namespace antdt::worker::ps_worker
