// What a worker of servers does in a phase, as trainer/loop/ps_train_phase.h.
#include <algorithm>

#include "sim/ps_worker.h"
#include "trainer/ps/rows.h"
#include "trainer/ps_link/placement.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kDataPatience = milliseconds(50);
constexpr Duration kLookAgain = milliseconds(5);
constexpr Duration kPlanWait = milliseconds(20);
constexpr int kMostPulls = 4;
constexpr std::uint64_t kHoldBatches = 8;
constexpr std::uint64_t kEvalBatch = 8;

}  // namespace

// -------------------------------------------------------------------- training

void PsWorker::train() {
  idle_ = false;
  plan_changed_ = true;
  batch_.clear();
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
  take_up_plan();
  core_.set_activity(idle_ || share_.samples == 0 ? "shard_wait" : "data");
  data_until_ = clock_.now() + kDataPatience;
  if (share_.samples == 0) {
    return later(clock_.real(kPlanWait), [this] {
      take_records(1);
      have_batch(taken_ == client::TakeStatus::kEnd);
    });
  }
  have_batch(false);
}

// Waits a while for as much as its share, if there may be more.
void PsWorker::have_batch(bool end) {
  if (!end && share_.samples > 0) take_records(share_.samples);
  end = taken_ == client::TakeStatus::kEnd;
  const bool waits = batch_.size() < share_.samples && more_may_come_ && !end;
  if (waits && clock_.now() < data_until_) {
    return later(clock_.real(kLookAgain), [this] { have_batch(false); });
  }
  if (!batch_.empty()) return pull(kMostPulls);
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

void PsWorker::take_records(std::uint64_t wanted) {
  more_may_come_ = false;
  while (batch_.size() < wanted) {
    const client::Taken taken = core_.take(wanted - batch_.size());
    taken_ = taken.status;
    if (taken.records == 0) {
      more_may_come_ = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    for (const wire::Piece& piece : taken.pieces) append_records(piece, batch_);
  }
  feed(client::Tick{});
}

std::uint64_t PsWorker::pull_clock() const {
  if (barrier()) return version_;
  return consistency_ == ps::Consistency::kBounded ? pushes_ - std::min(pushes_, staleness_) : 0;
}

void PsWorker::pull(int left) {
  std::vector<std::optional<PsAsk>> asks;
  for (const auto& keys : keys_by_server()) {
    asks.emplace_back(wire::PsPull{pull_clock(), {{0, ps::to_bytes(keys), {}}}});
  }
  ask("collective_wait", std::move(asks),
      [this, left](const std::vector<PsReply>& replies) { pulled(left - 1, replies); });
}

void PsWorker::pulled(int left, const std::vector<PsReply>& replies) {
  versions_.clear();
  slowest_ = std::get<wire::PsPulled>(replies.front()).clock;
  for (const PsReply& reply : replies) {
    const auto& one = std::get<wire::PsPulled>(reply);
    versions_.push_back(one.version);
    slowest_ = std::min(slowest_, one.clock);
  }
  const auto [oldest, newest] = std::ranges::minmax(versions_);
  pulled_version_ = oldest;
  version_ = std::max(version_, newest);
  if (oldest != newest && barrier() && left > 0) return pull(left);
  compute();
}

void PsWorker::compute() {
  doing_ = Doing::kTraining;
  const auto work = microseconds(200) + shape_.sample_time * static_cast<int>(batch_.size());
  computed_ = world_.rng().time(work, work + work / 4);
  do_next("compute", computed_, [this] { stage(); });
}

void PsWorker::stage() {
  // Who was away goes on with the others.
  pushes_ = std::max(pushes_, barrier() ? 0 : slowest_) + 1;
  std::vector<std::optional<PsAsk>> asks;
  for (const auto& keys : keys_by_server()) {
    const std::vector<float> ones(keys.size(), sabotage_ == Sabotage::kApplyTwice ? 2.0F : 1.0F);
    asks.emplace_back(
        wire::PsPush{pushes_, pulled_version_, {{0, ps::to_bytes(keys), ps::to_bytes(ones)}}});
  }
  around_.pushed(*this, pushes_, batch_);
  if (sabotage_ == Sabotage::kCommitEarly) feed(client::Commit{place_ + batch_.size(), {}});
  ask("collective_wait", std::move(asks), [this](const std::vector<PsReply>&) { commit(); });
}

void PsWorker::commit() {
  wire::PsCommit commit;
  commit.number = pushes_;
  const std::uint32_t home = ps::home_of(consistency_, member_.worker, link_->servers());
  commit.version = barrier() ? pulled_version_ : versions_[home];
  commit.phase = phase_.phase;
  commit.from = place_;
  commit.to = place_ + batch_.size();
  commit.weight = static_cast<double>(batch_.size());
  std::vector<std::optional<PsAsk>> asks(link_->servers());
  asks[home] = commit;
  ask("collective_wait", std::move(asks), [this, home](const std::vector<PsReply>& replies) {
    decided(std::get<wire::PsDecided>(replies[home]));
  });
}

void PsWorker::decided(const wire::PsDecided& decided) {
  doing_ = Doing::kTraining;
  idle_ = false;
  if (barrier()) version_ = std::max(version_, decided.version);
  if (decided.status == "applied") {
    conclude();
    return next_batch();
  }
  if (over()) return phase_over();
  if (wants_to_leave()) return leave();
  pull(kMostPulls);
}

void PsWorker::conclude() {
  client::BatchTimes times;
  times.samples = batch_.size();
  times.compute = computed_;
  times.counts = !plan_changed_ && batch_.size() == share_.samples;
  plan_changed_ = false;
  place_ += batch_.size();
  batch_.clear();
  feed(client::Commit{place_, {}});
  feed(times);
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

void PsWorker::leave() {
  send_progress(false);
  idle([this] { exit(leave_code()); });
}

// The group is, and with it the phase.
void PsWorker::phase_over() {
  if (wants_to_leave()) return exit(leave_code());
  doing_ = Doing::kIdle;
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
