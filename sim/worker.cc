#include "sim/worker.h"

#include <algorithm>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kVictim = 76;
constexpr Duration kRepeatFinalModel = seconds(2);
// A checkpoint is read and written in so many parts, of which reports say how many are done.
constexpr std::uint64_t kParts = 40;
constexpr std::uint64_t kPartBytes = 1'000'000;

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
  later(kRepeatFinalModel, [this] { turn(); });
  if (!final_model_->error.empty()) {
    final_model_.reset();
    return write_final_model();
  }
  feed(*final_model_);
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

void Worker::join(std::string problem, std::string unreadable) {
  wire::Join join;
  join.pid = pid_;
  join.data = shape_.data();
  join.problem = std::move(problem);
  join.unreadable = std::move(unreadable);
  join.settled = std::max(settled_, ready_);
  join.step = state_.step;
  world_.say("{}.{} joins (holds generation {} at step {}){}", member_.worker, member_.attempt,
             settled_, state_.step, join.problem.empty() ? "" : ": " + join.problem);
  feed(join);
}

void Worker::on(const wire::Form& form) {
  final_model_.reset();
  writes_final_ = false;
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
      if (form_.base == Generation{} && !form_.restore.empty()) {
        begin_again(ring);
      } else {
        take_part(ring);
      }
      turn();
    });
  });
}

// One reads the checkpoint, and the others receive it.
void Worker::begin_again(Ring* ring) {
  settled_ = {};
  pristine_ = false;
  state_.phase = 0;
  state_.places.clear();
  rank_ == form_.reader ? read_on(ring, 0) : take_part(ring);
}

void Worker::read_on(Ring* ring, std::uint64_t parts) {
  if (shape_.read_time > Duration::zero() && parts < kParts) {
    blocked("reconfigure");
    say_io("reading the checkpoint", form_.restore, parts);
    return later(shape_.read_time / kParts, [this, ring, parts] {
      if (ring_ != ring || doing_ != Doing::kBlocked) return say_no_io();
      doing_ = Doing::kIdle;
      read_on(ring, parts + 1);
      turn();
    });
  }
  say_no_io();
  const Trained* saved = around_.read_checkpoint(form_.restore);
  if (saved == nullptr) return dissolve("cannot read the checkpoint", "it is damaged");
  state_ = *saved;
  state_.phase = 0;
  state_.places.clear();
  take_part(ring);
}

void Worker::take_part(Ring* ring) {
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
}

std::optional<bool> Worker::holds_state() {
  if (form_.base != Generation{}) {
    // It settled with this member, who was not told.
    if (form_.base == ready_ && settled_ != form_.base) settle_here(ready_, ready_members_);
    return settled_ == form_.base;
  }
  if (!form_.restore.empty()) return rank_ == form_.reader;  // which has read it
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
  if (rank_ != start.writer) {
    final_model_.reset();
    writes_final_ = false;
    return;
  }
  if (std::exchange(writes_final_, true)) return;
  write_final_model();
}

// Once the checkpoint that it may still be writing is done.
void Worker::write_final_model() {
  if (!writes_final_) return;
  if (writing_) return later(kTurn, [this] { write_final_model(); });
  wire::CheckpointWritten about;
  about.number = std::max(core_.checkpoint_ordered(), state_.checkpoint) + 1;
  about.phase = phase_.phase;
  about.step = state_.step;
  write_beside(std::move(about), [this](wire::CheckpointWritten written) {
    if (!writes_final_) return;
    feed(written);
    final_model_ = std::move(written);
    final_model_said_ = clock_.now();
    later(kRepeatFinalModel, [this] { turn(); });
  });
}

void Worker::write_beside(wire::CheckpointWritten about,
                          std::function<void(wire::CheckpointWritten)> done) {
  about.directory = fmt::format(".tmp-{}-{}.{}", about.step, member_.worker, member_.attempt);
  writing_ = Writing{std::move(about), state_, std::move(done)};
  write_on(0);
}

void Worker::write_on(std::uint64_t parts) {
  if (shape_.write_time > Duration::zero() && parts < kParts) {
    say_io("writing the checkpoint", writing_->about.directory, parts);
    return later(shape_.write_time / kParts, [this, parts] { write_on(parts + 1); });
  }
  say_no_io();
  Writing written = std::move(*writing_);
  writing_.reset();
  written.about.error = around_.write_checkpoint(written.about.directory, written.state);
  written.done(std::move(written.about));
}

void Worker::say_io(const char* what, const std::string& path, std::uint64_t parts) {
  constexpr Duration kMoment = seconds(2);
  if (!moves_since_ || world_.now() - moved_ > kMoment) moves_since_ = world_.now();
  moved_ = world_.now();
  if (sabotage_ == Sabotage::kSayNoBytes) return;
  core_.set_io({what, path, parts * kPartBytes, kParts * kPartBytes});
}

void Worker::say_no_io() {
  moves_since_.reset();
  core_.set_io({});
}

Duration Worker::moves_bytes_for() const {
  return moves_since_ && alive() && !stopped() ? world_.now() - *moves_since_ : Duration::zero();
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

void Worker::dissolve(std::string problem, std::string unreadable) {
  core_.set_activity("reconfigure");
  leave_ring(false);
  join(std::move(problem), std::move(unreadable));
}

void Worker::formation_failed(const std::string& why) {
  dissolve(ended_ >= guarded_ ? std::string() : why);
}

}  // namespace antdt::sim
