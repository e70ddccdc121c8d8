// What a member does in a phase, as trainer/loop/train_phase.h and eval_phase.h.
#include <algorithm>

#include "sim/worker.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kIdleWait = milliseconds(20);
constexpr std::uint64_t kHoldSteps = 8;

}  // namespace

// -------------------------------------------------------------------- training

void Worker::begin_training(const wire::PhaseStart& start) {
  phase_ = start;
  remaining_ = start.records - std::min(start.committed, start.records);
  counted_ = place_ = stable_place_ = 0;
  stopped_early_ = false;
  world_.say("{}.{} trains phase {} from {} of {} records at step {}", member_.worker,
             member_.attempt, start.phase, start.committed, start.records, state_.step);
  feed(client::BeginPhase{start.phase});
  feed(client::SetHold{kHoldSteps * share_.samples});
  if (complete()) return exchange(true);
  batch_.clear();
  data_until_ = clock_.now() + kDataPatience;
  compute();
}

void Worker::compute() {
  doing_ = Doing::kComputing;
  core_.set_activity("data");
  take_records(share_.samples);
  const bool enough = batch_.size() >= share_.samples;
  if (!enough && has_data_ && clock_.now() < data_until_) {
    return later(kLookAgain, [this] { compute(); });
  }
  has_data_ = enough && share_.samples > 0;
  const auto work = microseconds(200) + shape_.sample_time * static_cast<int>(batch_.size());
  do_next("compute", world_.rng().time(work, work + work / 4), [this] { exchange(false); });
}

// `has_data_`: more may come if it waits.
void Worker::take_records(std::uint64_t wanted) {
  has_data_ = false;
  while (batch_.size() < wanted) {
    const client::Taken taken = core_.take(wanted - batch_.size());
    if (taken.records == 0) {
      has_data_ = taken.status == client::TakeStatus::kWait && !taken.dry && !taken.stale;
      break;
    }
    const std::size_t before = batch_.size();
    for (const wire::Piece& piece : taken.pieces) append_records(piece, batch_);
    for (std::size_t i = before; i < batch_.size(); ++i) around_.took(*this, batch_[i]);
  }
  feed(client::Tick{});
}

void Worker::exchange(bool last) {
  Contribution mine;
  if (!last) mine.records = std::exchange(batch_, {});
  mine.slot.records = static_cast<std::uint32_t>(mine.records.size());
  mine.slot.weight = static_cast<double>(mine.records.size());
  mine.slot.place = place_ + mine.records.size();
  mine.slot.plan = std::max(core_.held_plan(), share_.version);
  const bool busy = rank_ == 0 && writing_;
  mine.slot.checkpoint =
      busy ? state_.checkpoint : std::max(core_.checkpoint_ordered(), state_.checkpoint);
  mine.slot.leaving = wants_to_stop();
  mine.slot.has_data = has_data_;
  blocked("collective_wait");
  const std::uint64_t records = mine.records.size();
  if (ended_ >= guarded_) {  // aborted while it computed
    ring_->leave(rank_, false);
    return later(microseconds(200), [this, ring = ring_] {
      if (ring_ == ring && doing_ == Doing::kBlocked) leave_phase(false);
    });
  }
  ring_->exchange(
      rank_, std::move(mine), [this, ring = ring_, records, last](const Ring::Contributions* all) {
        const bool got = all != nullptr;
        later({}, [this, ring, records, last, got, copy = got ? *all : Ring::Contributions{}] {
          if (ring_ != ring || doing_ != Doing::kBlocked) return;
          if (!got) return leave_phase(false);
          std::vector<trainer::StepSlot> slots;
          for (const Contribution& c : copy) slots.push_back(c.slot);
          const trainer::Agreement agreed = trainer::agree(slots);
          concluded(agreed, copy, records);
          next_step(agreed, last);
        });
      });
}

void Worker::apply(const Ring::Contributions& all) {
  for (int times = 0; times < (sabotage_ == Sabotage::kApplyTwice ? 2 : 1); ++times) {
    for (const Contribution& c : all) {
      for (const Record r : c.records) {
        ++state_.model.tally.at(r);
        around_.trained(*this, r);
      }
    }
  }
}

void Worker::concluded(const trainer::Agreement& agreed, const Ring::Contributions& all,
                       std::uint64_t records) {
  if (agreed.applies()) apply(all);
  state_.step = state_.step.next();
  pristine_ = false;
  state_.phase = phase_.phase;
  state_.places.clear();
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    state_.places.push_back({members_[rank], agreed.places[rank]});
  }
  stable_place_ = place_;
  place_ += records;
  if (sabotage_ == Sabotage::kCommitEarly) stable_place_ = place_;
  counted_ += agreed.records;
  if (records > 0) {
    feed(client::BatchTimes{records, microseconds(100),
                            std::chrono::duration_cast<Duration>(
                                shape_.sample_time * static_cast<int>(records) * slowdown_),
                            microseconds(50), true});
  }
  if (agreed.checkpoint > state_.checkpoint) write_ordered_checkpoint(agreed.checkpoint);
  if (agreed.plan > share_.version) {
    const auto plan = core_.plan(agreed.plan);
    if (!plan) {
      world_.violate("a plan is held by who says so", doing());
      return;
    }
    share_ = {plan->version, 0};
    for (const wire::PlanEntry& e : plan->entries) {
      if (e.worker == member_.worker) share_.samples = e.micro_batch * e.accumulation;
    }
    feed(client::SetHold{kHoldSteps * share_.samples});
  }
  feed(client::Commit{stable_place_, {}});
  send_progress(false);
}

void Worker::next_step(const trainer::Agreement& agreed, bool last) {
  if (!alive()) return;
  if (last) return end_training();
  doing_ = Doing::kComputing;
  if (agreed.any_leaving) {
    stopped_early_ = true;
    return exchange(true);
  }
  if (complete()) return exchange(true);
  batch_.clear();
  const Duration wait = agreed.records == 0 ? kIdleWait : Duration{};
  do_next("shard_wait", wait, [this] {
    data_until_ = clock_.now() + kDataPatience;
    compute();
  });
}

// The last step with records is stable when one more has completed.
void Worker::end_training() {
  stable_place_ = place_;
  feed(client::Commit{stable_place_, {}});
  send_progress(complete());
  if (complete()) around_.phase_done(*this);
  if (wants_to_leave()) return exit(leave_code());
  leave_phase(complete() || !stopped_early_);
}

void Worker::leave_phase(bool done) {
  doing_ = Doing::kIdle;
  feed(client::SetHold{0});
  if (done) {
    core_.set_activity("collective_wait");
  } else {
    dissolve();
  }
  turn();
}

void Worker::send_progress(bool done) {
  wire::Progress progress;
  progress.phase = phase_.phase;
  progress.step = state_.step;
  progress.place = stable_place_;
  progress.samples = phase_.records - remaining_ + counted_;
  progress.plan = share_.version;
  progress.done = done;
  feed(progress);
}

void Worker::write_ordered_checkpoint(std::uint64_t number) {
  state_.checkpoint = number;
  if (rank_ != 0) return;
  wire::CheckpointBegun begun{number, phase_.phase, state_.step, state_.places};
  if (sabotage_ == Sabotage::kSaveLate) {
    for (wire::MemberPlace& at : begun.places) at.place -= std::min<std::uint64_t>(at.place, 1);
  }
  feed(begun);
  wire::CheckpointWritten about;
  about.number = number;
  about.phase = begun.phase;
  about.step = begun.step;
  about.places = begun.places;
  write_beside(std::move(about), [this](const wire::CheckpointWritten& written) { feed(written); });
}

// ------------------------------------------------------------------ evaluation

void Worker::begin_evaluation(const wire::PhaseStart& start) {
  phase_ = start;
  place_ = 0;
  feed(client::BeginPhase{start.phase});
  feed(client::SetHold{4 * kEvalBatch});
  evaluate();
}

void Worker::evaluate() {
  doing_ = Doing::kEvaluating;
  if (ended_ >= guarded_) return leave_phase(false);
  if (wants_to_leave()) return exit(leave_code());
  if (core_.regroup_requested()) return leave_phase(false);
  const client::Taken taken = core_.take(kEvalBatch);
  feed(client::Tick{});
  if (taken.status == client::TakeStatus::kEnd) return leave_phase(true);
  if (taken.records == 0) return later(milliseconds(10), [this] { evaluate(); });
  do_next("compute", shape_.sample_time * static_cast<int>(taken.records),
          [this, records = taken.records] {
            place_ += records;
            wire::EvalPartial partial;
            partial.records = records;
            feed(client::Commit{place_, partial});
            if (alive()) evaluate();
          });
}

}  // namespace antdt::sim
