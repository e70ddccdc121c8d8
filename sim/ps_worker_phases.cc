// What a worker of servers does in a phase, as trainer/loop/ps_train_phase.h.
#include <algorithm>
#include <utility>

#include "sim/ps_worker.h"
#include "trainer/ps/placement.h"
#include "trainer/ps/rows.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kPlanWait = milliseconds(20);
constexpr int kMostPulls = 4;
constexpr std::size_t kMostUnderWay = 2;
constexpr std::uint64_t kHoldBatches = 8;

}  // namespace

// -------------------------------------------------------------------- training

void PsWorker::train() {
  idle_ = false;
  plan_changed_ = true;
  pushed_place_ = 0;
  forget_under_way();
  world_.say("{}.{} trains phase {} at version {}", member_.worker, member_.attempt, phase_.phase,
             version_);
  feed(client::SetHold{kHoldBatches * share_.samples});
  next_batch();
}

void PsWorker::next_batch() {
  if (!alive()) return;
  doing_ = Doing::kTraining;
  if (over()) return phase_over();
  if (wants_to_leave()) return leave();
  if (next_.empty()) {
    take_up_plan();
    if (take_records(share_.samples)) next_ = std::exchange(taking_, {});
  }
  if (!next_.empty()) {
    batch_ = std::exchange(next_, {});
    return pull(kMostPulls);
  }
  // What is under way may be all that the end of the phase waits for.
  wait_until([this] { return pushes_.empty(); },
             [this] {
               core_.set_activity(idle_ || share_.samples == 0 ? "shard_wait" : "data");
               data_until_ = clock_.now() + kDataPatience;
               if (share_.samples > 0) return wait_for_records();
               later(clock_.real(kPlanWait), [this] {
                 std::ignore = take_records(1);
                 wait_for_records();
               });
             });
}

// Waits a while for as much as its share, if there may be more.
void PsWorker::wait_for_records() {
  const bool at_hand = share_.samples > 0 ? take_records(share_.samples) : !taking_.empty();
  const bool end = taken_ == client::TakeStatus::kEnd;
  if (!at_hand && share_.samples > 0 && !end && more_may_come_ && clock_.now() < data_until_) {
    return later(clock_.real(kLookAgain), [this] { wait_for_records(); });
  }
  if (!taking_.empty()) {
    batch_ = std::exchange(taking_, {});
    return pull(kMostPulls);
  }
  if (end) return finish();
  idle([this] { later(clock_.real(kLookAgain), [this] { next_batch(); }); });
}

void PsWorker::take_up_plan() {
  const PlanVersion newest = core_.held_plan();
  const auto plan = newest == share_.version ? std::nullopt : core_.plan(newest);
  if (!plan) return;
  share_ = {newest, 0};
  for (const wire::PlanEntry& e : plan->entries) {
    if (e.worker == member_.worker) share_.samples = e.micro_batch * e.accumulation;
  }
  plan_changed_ = true;
  feed(client::SetHold{kHoldBatches * share_.samples});
}

bool PsWorker::take_records(std::uint64_t wanted) {
  more_may_come_ = false;
  while (taking_.size() < wanted) {
    const client::Taken taken = core_.take(wanted - taking_.size());
    taken_ = taken.status;
    if (taken.records == 0) {
      more_may_come_ = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    for (const wire::Piece& piece : taken.pieces) append_records(piece, taking_);
  }
  feed(client::Tick{});
  return !taking_.empty() && !more_may_come_;
}

void PsWorker::look_ahead(std::uint64_t more) {
  if (next_.empty()) {
    take_up_plan();
    if (!take_records(share_.samples)) return;
    next_ = std::exchange(taking_, {});
  }
  say_pull(next_, pull_clock(more));
}

void PsWorker::forget_pull() {
  if (pull_) link_->forget(pull_->call);
  pull_.reset();
}

bool PsWorker::pull_waits_for_push() const {
  return barrier() || (consistency_ == ps::Consistency::kBounded && staleness_ == 0);
}

std::uint64_t PsWorker::pull_clock(std::uint64_t more) const {
  if (barrier()) return version_ + more;
  const std::uint64_t pushes = pushes_said_ + more;
  return consistency_ == ps::Consistency::kBounded ? pushes - std::min(pushes, staleness_) : 0;
}

void PsWorker::say_pull(const std::vector<Record>& records, std::uint64_t clock) {
  std::vector<std::optional<PsAsk>> asks;
  for (const auto& keys : keys_by_server(records)) {
    asks.emplace_back(wire::PsPull{clock, {{0, ps::to_bytes(keys), {}}}});
  }
  const std::uint64_t number = ++pulls_said_;
  const auto done = [this, number](const PsLink::Answers& answers) {
    if (!answers) no_answers_ = true;
    if (answers && pull_ && pull_->number == number) pull_->replies = *answers;
    came();
  };
  pull_ = Pull{number, link_->ask(std::move(asks), done), {}};
}

void PsWorker::pull(int left) {
  if (!pull_) say_pull(batch_, pull_clock(0));
  wait_until([this] { return !pull_->replies.empty(); }, [this, left] { pulled(left - 1); });
}

void PsWorker::pulled(int left) {
  versions_.clear();
  std::optional<std::uint64_t> slowest;
  for (const PsReply& reply : pull_->replies) {
    const auto& one = std::get<wire::PsPulled>(reply);
    versions_.push_back(one.version);
    slowest = std::min(slowest.value_or(one.clock), one.clock);
  }
  pull_.reset();
  const auto [oldest, newest] = std::ranges::minmax(versions_);
  pulled_version_ = oldest;
  version_ = std::max(version_, newest);
  if (oldest != newest && barrier() && left > 0) return pull(left);
  // Who was away goes on with the others.
  if (!barrier()) pushes_said_ = std::max(pushes_said_, *slowest);
  compute();
}

void PsWorker::compute() {
  doing_ = Doing::kTraining;
  if (!pull_waits_for_push()) look_ahead(1);
  if (!advance()) return;
  const auto work = microseconds(200) + shape_.sample_time * static_cast<int>(batch_.size());
  computed_ = world_.rng().time(work, work + work / 4);
  do_next("compute", computed_, [this] { computed(); });
}

// Places are known once what came too late before is given back.
void PsWorker::computed() {
  if (core_.gives_back() && sabotage_ != Sabotage::kPushTooSoon) {
    core_.set_activity("shard_wait");
    if (over()) return phase_over();
    if (wants_to_leave()) return leave();
    return later(clock_.real(kLookAgain), [this] { computed(); });
  }
  wait_until([this] { return pushes_.size() < kMostUnderWay; }, [this] { push(); });
}

void PsWorker::push() {
  stage();
  if (pull_waits_for_push()) look_ahead(barrier() ? 1 : 0);
  if (!barrier()) return next_batch();
  wait_until([this] { return pushes_.front().decided.has_value(); }, [this] { decide_step(); });
}

void PsWorker::stage() {
  ++pushes_said_;
  Push& push = pushes_.emplace_back();
  for (const auto& keys : keys_by_server(batch_)) {
    const std::vector<float> ones(keys.size(), sabotage_ == Sabotage::kApplyTwice ? 2.0F : 1.0F);
    push.parts.emplace_back(
        wire::PsPush{pushes_said_, pulled_version_, {{0, ps::to_bytes(keys), ps::to_bytes(ones)}}});
  }
  around_.pushed(*this, pushes_said_, batch_);
  const std::uint32_t home = ps::home_of(consistency_, member_.worker, link_->servers());
  push.commit.number = pushes_said_;
  push.commit.version = barrier() ? pulled_version_ : versions_[home];
  push.commit.phase = phase_.phase;
  push.commit.from = pushed_place_;
  push.commit.to = pushed_place_ + batch_.size();
  push.commit.weight = static_cast<double>(batch_.size());
  push.times.samples = batch_.size();
  push.times.compute = computed_;
  push.times.counts = !std::exchange(plan_changed_, false) && batch_.size() == share_.samples;
  if (!barrier()) pushed_place_ = push.commit.to;
  idle_ = false;
  if (sabotage_ == Sabotage::kCommitEarly) feed(client::Commit{push.commit.to, {}});
  core_.set_activity("collective_wait");
  advance_pushes();
}

// With a barrier: it counts, or is another worker's from now on.
void PsWorker::decide_step() {
  doing_ = Doing::kTraining;
  Push push = pushes_.front();
  pushes_.pop_front();
  version_ = std::max(version_, push.decided->version);
  if (push.decided->status == "applied") {
    pushed_place_ = push.commit.to;
    conclude(push);
    return next_batch();
  }
  forget_pull();
  push.times.in_model = false;
  feed(push.times);
  feed(client::GiveBack{batch_.size()});
  next_batch();
}

void PsWorker::conclude(const Push& push) {
  place_ = push.commit.to;
  feed(client::Commit{place_, {}});
  feed(push.times);
  send_progress(false);
}

void PsWorker::idle(std::function<void()> next) {
  if (idle_) return next();
  idle_everywhere(0, [this, next = std::move(next)](std::uint64_t decided) {
    version_ = std::max(version_, decided);
    idle_ = true;
    next();
  });
}

void PsWorker::finish() {
  idle_ = false;
  idle([this] {
    send_progress(true);
    around_.phase_done(*this);
    leave_phase();
  });
}

// What is computed is finished; what is not goes to others.
void PsWorker::leave() {
  send_progress(false);
  forget_pull();
  wait_until([this] { return pushes_.empty(); }, [this] { idle([this] { exit(leave_code()); }); });
}

// The group is, and with it the phase.
void PsWorker::phase_over() {
  if (wants_to_leave()) return exit(leave_code());
  doing_ = Doing::kIdle;
  forget_under_way();
  feed(client::SetHold{0});
  dissolve();
  turn();
}

void PsWorker::leave_phase() {
  doing_ = Doing::kIdle;
  core_.set_activity("collective_wait");
  feed(client::SetHold{0});
  turn();
}

void PsWorker::send_progress(bool done) {
  wire::Progress progress;
  progress.phase = phase_.phase;
  progress.step = Step{version_};
  progress.place = place_;
  progress.samples = place_;
  progress.plan = share_.version;
  progress.done = done;
  feed(progress);
}

// ------------------------------------------------------------------ evaluation

void PsWorker::evaluate() {
  doing_ = Doing::kEvaluating;
  if (over() || core_.regroup_requested()) return phase_over();
  if (wants_to_leave()) return exit(leave_code());
  batch_.clear();
  const client::Taken taken = core_.take(kEvalBatch);
  feed(client::Tick{});
  if (taken.status == client::TakeStatus::kEnd) return leave_phase();
  if (taken.records == 0) return later(milliseconds(10), [this] { evaluate(); });
  ask_all("collective_wait", wire::PsPull{},
          [this, records = taken.records](const std::vector<PsReply>&) {
            doing_ = Doing::kEvaluating;
            do_next("compute", shape_.sample_time * static_cast<int>(records), [this, records] {
              place_ += records;
              wire::EvalPartial partial;
              partial.records = records;
              feed(client::Commit{place_, partial});
              if (alive()) evaluate();
            });
          });
}

}  // namespace antdt::sim
