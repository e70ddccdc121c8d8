#include "sim/worker.h"

#include <algorithm>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kVictim = 76;
constexpr Duration kRepeatFinalModel = seconds(2);

// Orders that only make sense in the generation that they belong to.
bool is_of_members(const decltype(client::Directive::order)& order) {
  return std::holds_alternative<wire::Roster>(order) ||
         std::holds_alternative<wire::Settle>(order) ||
         std::holds_alternative<wire::PhaseStart>(order);
}

}  // namespace

Worker::Worker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
               Member member, std::uint32_t pid, std::string host, const HostClock& clock)
    : ClientProgram(world, around, member, pid, std::move(host), clock),
      shape_(shape),
      sabotage_(sabotage) {
  state_.model.tally.resize(shape.train_records);
}

// ----------------------------------------------------------------- the process

std::string Worker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, settled {}, step {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation_, settled_,
                     state_.step, phase_.phase, place_,
                     doing_ == Doing::kBooting     ? "booting"
                     : doing_ == Doing::kIdle      ? "idle"
                     : doing_ == Doing::kBlocked   ? "blocked"
                     : doing_ == Doing::kComputing ? "computing"
                                                   : "evaluating");
}

void Worker::welcomed() {
  doing_ = Doing::kIdle;
  join({});
  later(kTurn, [this] { turn(); });
}

void Worker::abort(Generation generation) {
  ended_ = std::max(ended_, generation);
  if (generation < guarded_ || doing_ != Doing::kBlocked) return;
  // What blocks the training thread lets go of it.
  if (ring_ == nullptr) return;
  ring_->leave(rank_, false);
  later(microseconds(200), [this, ring = ring_] {
    if (ring_ != ring || doing_ != Doing::kBlocked) return;
    doing_ = Doing::kIdle;
    dissolve();
    turn();
  });
}

// --------------------------------------------------------- the training thread

void Worker::blocked(const char* activity) {
  doing_ = Doing::kBlocked;
  core_.set_activity(activity);
}

void Worker::turn() {
  if (!alive() || turning_ || doing_ != Doing::kIdle) return;
  turning_ = true;
  while (alive() && doing_ == Doing::kIdle) {
    if (wants_to_leave()) {
      exit(leave_code());
      break;
    }
    const auto directive = core_.next_directive();
    if (!directive) break;
    obey(*directive);
  }
  turning_ = false;
  if (!alive() || !final_model_ || clock_.now() - final_model_said_ < kRepeatFinalModel) return;
  final_model_said_ = clock_.now();
  if (!final_model_->error.empty()) {
    final_model_->error = around_.write_checkpoint(final_model_->directory, state_);
  }
  feed(*final_model_);
  later(kRepeatFinalModel, [this] { turn(); });
}

void Worker::obey(const client::Directive& directive) {
  if (std::holds_alternative<wire::Form>(directive.order)) {
    generation_ = directive.generation;
  } else if (directive.generation != generation_ && is_of_members(directive.order)) {
    return;
  }
  std::visit([this](const auto& order) { on(order); }, directive.order);
}

// ------------------------------------------------------------------ membership

void Worker::join(std::string problem) {
  wire::Join join;
  join.pid = pid_;
  join.data = shape_.data();
  join.problem = std::move(problem);
  join.settled = std::max(settled_, ready_);
  join.step = state_.step;
  world_.say("{}.{} joins (holds generation {} at step {}){}", member_.worker, member_.attempt,
             settled_, state_.step, join.problem.empty() ? "" : ": " + join.problem);
  feed(join);
}

void Worker::on(const wire::Form& form) {
  final_model_.reset();
  leave_ring(false);
  form_ = form;
  rank_ = form.rank;
  guarded_ = generation_;
  has_builder_ = true;
  feed(wire::Address{fmt::format("{}:{}", member_.worker, generation_)});
}

void Worker::on(const wire::Roster& roster) {
  if (!has_builder_) return;  // of a generation that ended meanwhile
  has_builder_ = false;
  members_.clear();
  for (const wire::RosterMember& m : roster.members) members_.push_back(m.worker);
  ring_ = &around_.ring(form_.key, members_);
  if (ended_ >= guarded_) return formation_failed("it is over already");
  blocked("reconfigure");
  ring_->connect(rank_, [this, ring = ring_](const Ring::Contributions* all) {
    later({}, [this, ring, ok = all != nullptr] {
      if (ring_ != ring || doing_ != Doing::kBlocked) return;
      doing_ = Doing::kIdle;
      if (!ok) return formation_failed("cannot connect");
      const auto holds = holds_state();
      if (!holds) return exit(kVictim);
      ready_ = {};
      Contribution mine;
      mine.heal = {*holds, state_.step, 1, 1, 1, 1};
      blocked("reconfigure");
      ring->exchange(rank_, std::move(mine), [this, ring](const Ring::Contributions* slots) {
        const bool got = slots != nullptr;
        later({}, [this, ring, got, copy = got ? *slots : Ring::Contributions{}] {
          if (ring_ != ring || doing_ != Doing::kBlocked) return;
          doing_ = Doing::kIdle;
          if (!got) return formation_failed("the collective broke");
          heal(copy);
          turn();
        });
      });
      turn();
    });
  });
}

std::optional<bool> Worker::holds_state() {
  if (form_.base != Generation{}) {
    // It settled with this member, who was not told.
    if (form_.base == ready_ && settled_ != form_.base) settle_here(ready_, ready_members_);
    return settled_ == form_.base;
  }
  if (!form_.restore.empty()) {
    settled_ = {};
    pristine_ = false;
    const Trained* saved = around_.read_checkpoint(form_.restore);
    if (saved == nullptr) {
      state_.phase = 0;
      state_.places.clear();
      return false;
    }
    state_ = *saved;
    state_.phase = 0;
    state_.places.clear();
    return true;
  }
  if (pristine_) return true;
  return {};  // only a new process can go back to the beginning
}

void Worker::heal(const Ring::Contributions& all) {
  std::vector<trainer::HealSlot> slots;
  for (const Contribution& c : all) slots.push_back(c.heal);
  const bool had = slots[rank_].has_state;
  const auto plan = trainer::heal_plan(slots, static_cast<std::uint32_t>(rank_));
  if (!plan) return formation_failed(plan.error().message);
  if (!plan->receives) {
    if (plan->sends) ring_->offer(rank_, state_);
    return healed();
  }
  if (!had) {
    settled_ = {};
    pristine_ = false;
  }
  blocked("reconfigure");
  ring_->receive_left(rank_, [this, ring = ring_, sends = plan->sends](const Trained* received) {
    const bool got = received != nullptr;
    later({}, [this, ring, sends, got, state = got ? *received : Trained{}] {
      if (ring_ != ring || doing_ != Doing::kBlocked) return;
      doing_ = Doing::kIdle;
      if (!got) return formation_failed("the source of the state is gone");
      const bool old = sabotage_ == Sabotage::kKeepOldState && !state_.model.tally.empty() &&
                       settled_ != Generation{};
      const Model kept = state_.model;
      state_ = state;
      if (old) state_.model = kept;
      pristine_ = false;
      settled_ = form_.base;
      if (sends) ring_->offer(rank_, state_);
      healed();
      turn();
    });
  });
}

void Worker::healed() {
  ready_ = generation_;
  ready_members_ = members_;
  world_.say("{}.{} is ready for generation {} at step {}", member_.worker, member_.attempt,
             generation_, state_.step);
  // A sabotaged member says what the others say: the invariants are to see it.
  const bool lies = sabotage_ != Sabotage::kNone;
  feed(wire::Ready{state_.step, lies ? 1 : state_.model.hash(), state_.phase, state_.places});
}

void Worker::settle_here(Generation generation, const std::vector<WorkerId>& members) {
  settled_ = generation;
  state_.places.clear();
  for (const WorkerId id : members) state_.places.push_back({id, 0});
}

void Worker::on(const wire::Settle& settle) {
  if (ring_ == nullptr) return;
  if (settle.step != state_.step) {
    world_.violate("settle at the step of all",
                   fmt::format("{} settles at step {}", doing(), settle.step));
    return;
  }
  settle_here(generation_, members_);
  share_ = {settle.plan.version, 0};
  for (const wire::PlanEntry& e : settle.plan.entries) {
    if (e.worker == member_.worker) share_.samples = e.micro_batch * e.accumulation;
  }
}

void Worker::on(const wire::PhaseStart& start) {
  if (ring_ == nullptr) return;
  if (start.what == "finish") return finish(start);
  start.what == "train" ? begin_training(start) : begin_evaluation(start);
}

void Worker::finish(const wire::PhaseStart& start) {
  phase_ = start;
  core_.set_activity("checkpoint");
  if (rank_ != 0) return;
  wire::CheckpointWritten written;
  written.number = std::max(core_.checkpoint_ordered(), state_.checkpoint) + 1;
  written.phase = start.phase;
  written.step = state_.step;
  written.directory = fmt::format(".tmp-{}-{}.{}", state_.step, member_.worker, member_.attempt);
  written.error = around_.write_checkpoint(written.directory, state_);
  feed(written);
  final_model_ = std::move(written);
  final_model_said_ = clock_.now();
  later(kRepeatFinalModel, [this] { turn(); });
}

void Worker::on(const wire::Abort&) {
  if (has_builder_ || ring_ != nullptr) dissolve();
}

void Worker::on(const wire::Regroup&) {
  if (has_builder_ || ring_ != nullptr) dissolve();
}

void Worker::on(const wire::Leave& leave) { exit(static_cast<int>(leave.code)); }

void Worker::leave_ring(bool silently) {
  has_builder_ = false;
  if (Ring* const ring = std::exchange(ring_, nullptr)) ring->leave(rank_, silently);
}

void Worker::dissolve(std::string problem) {
  core_.set_activity("reconfigure");
  leave_ring(false);
  join(std::move(problem));
}

void Worker::formation_failed(const std::string& why) {
  dissolve(ended_ >= guarded_ ? std::string() : why);
}

}  // namespace antdt::sim
