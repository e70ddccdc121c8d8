#include "sim/fleet/groups/collective.h"

#include <algorithm>
#include <utility>

#include "core/sync_strategy.h"
#include "trainer/worker/habits.h"

namespace antdt::fleet {
namespace {

constexpr double kLookS = 0.001;  // from one look for records to the next
constexpr double kIdleWaitS = 0.02;
constexpr Duration kProgressEvery = std::chrono::milliseconds(50);
constexpr Duration kTellSteps = std::chrono::seconds(1);

}  // namespace

Collective::Collective(Player& player) : player_(player) {
  if (player.sharing()) shared_.emplace(player, *player.sharing());
  if (on_servers(player.spec().sync)) rows_.emplace(player);
}

void Collective::hear(Worker& process, Generation generation, const ctl::job::WorkerMessage& body) {
  if (process.is_server()) return rows_->hear(process, generation, body);
  std::visit([&](const auto& order) { on(process, generation, order); }, body);
}

void Collective::joined(Worker& process) {
  process.is_server() ? rows_->joined(process) : join(process);
}

const char* Collective::activity(const Worker& worker) const {
  if (!training_) return "reconfigure";
  const bool computes = player_.now() < step_began_ + from_seconds(worker.own_s);
  return computes ? "compute" : "collective_wait";
}

double Collective::exchange_s() const { return player_.exchange_s(members_.size()); }

// Does nothing if by then the group has dissolved or its turn has changed.
void Collective::after(double seconds, void (Collective::*what)()) {
  player_.world().after(from_seconds(seconds), [this, what, turn = ++turn_] {
    if (turn == turn_) (this->*what)();
  });
}

// ------------------------------------------------------------------ membership

void Collective::join(Worker& worker) {
  worker.in_group = false;
  wire::Join join;
  join.pid = worker.member.worker.index + 1;
  join.data = {player_.spec().train_records, player_.spec().eval_records, "simulated", ""};
  join.settled = worker.settled;
  if (worker.settled != Generation{}) join.step = step_;
  if (const drill::Device* device = player_.emulation().device_of(worker.member.worker)) {
    join.device = {device->name, device->memory};
  }
  player_.say(worker, std::move(join));
}

// No member holds the training state: it is read from the newest checkpoint, or training begins at
// the start.
void Collective::begin_from_checkpoint() {
  const auto& checkpoint = player_.newest_checkpoint();
  step_ = checkpoint ? checkpoint->written.step : Step{};
  state_phase_ = 0;
  places_.clear();
  log_ = {};
}

void Collective::on(Worker& worker, Generation generation, const wire::Form& form) {
  worker.generation = generation;
  worker.in_group = true;
  worker.rank = form.rank;
  if (form.base == Generation{}) begin_from_checkpoint();
  player_.say(worker, wire::Address{"address"});
}

void Collective::on(Worker& worker, Generation generation, const ctl::SharedRoster&) {
  if (!worker.in_group || worker.generation != generation) return;
  player_.world().after(from_seconds(player_.costs().regroup_s),
                        [this, &worker, member = worker.member, generation] {
                          const bool same = worker.alive && worker.member == member &&
                                            worker.in_group && worker.generation == generation;
                          if (same) player_.say(worker, ready(worker));
                        });
}

wire::Ready Collective::ready(const Worker& worker) const {
  wire::Ready ready;
  ready.step = step_;
  ready.state_hash = 1;
  ready.phase = state_phase_;
  ready.places = places_;
  if (worker.rank == 0) ready.history = log_.history();
  return ready;
}

// Rosters arrive in the order of ranks.
void Collective::on(Worker& worker, Generation generation, const wire::Settle& settle) {
  if (generation != generation_) {
    ++turn_;
    if (shared_) shared_->cancel();
    generation_ = generation;
    members_.clear();
    in_phase_ = 0;
    training_ = stops_ = finishes_ = false;
    log_.begin(generation);
    trial_.reset();
    if (shared_) trial_.emplace();
    shares_next_ = true;
  }
  members_.push_back(&worker);
  worker.settled = generation;
  worker.phase = 0;
  worker.place = 0;
  worker.take_up(settle.plan);
  worker.share = worker.held;
}

// The places of all members are known to all who were in the group.
void Collective::dissolve() {
  if (members_.empty()) return;
  ++turn_;
  if (shared_) shared_->cancel();
  training_ = finishes_ = false;
  places_.clear();
  for (const Worker* m : members_) places_.push_back({m->member.worker, m->place});
  members_.clear();
  generation_ = {};
}

void Collective::recorded(Generation generation, Step step) {
  if (generation == log_.history().generation) log_.forget(step);
}

// The other members wait until they are released. Between two phases, too, they know only the lost
// member's place: its next attempt joins without a state.
void Collective::gone(Worker& worker) {
  if (std::ranges::find(members_, &worker) != members_.end()) dissolve();
}

void Collective::on(Worker& worker, Generation generation, const wire::Abort&) {
  if (!worker.in_group || worker.generation != generation) return;
  if (generation == generation_) dissolve();
  join(worker);
}

void Collective::on(Worker& worker, Generation generation, const wire::Regroup&) {
  if (!worker.in_group || worker.generation != generation) return;
  if (training_) {
    stops_ = true;
    return;
  }
  if (generation == generation_) dissolve();
  join(worker);
}

void Collective::on(Worker& worker, Generation, const wire::Leave& leave) {
  if (training_ && worker.in_group && worker.generation == generation_) {
    worker.leaves = leave.code;
    stops_ = true;
    return;
  }
  player_.leave(worker, leave.code);
}

void Collective::on(Worker& worker, Generation, const wire::Plan& plan) {
  if (plan.version > worker.held.version) worker.take_up(plan);
}

void Collective::on(Worker&, Generation, const wire::CheckpointOrder& order) {
  checkpoint_ordered_ = std::max(checkpoint_ordered_, order.number);
  if (finishes_) write_final_model();
}

void Collective::on(Worker& worker, Generation generation, const wire::PhaseStart& start) {
  if (!worker.in_group || generation != generation_ || worker.phase == start.phase) return;
  worker.begin_phase(start.phase, player_.now());
  if (start.phase != phase_.phase) in_phase_ = 0;
  phase_ = start;
  if (++in_phase_ < members_.size()) return;
  in_phase_ = 0;
  remaining_ = start.records - std::min(start.committed, start.records);
  counted_ = 0;
  if (start.what != wire::PhaseKind::kTrain) return write_final_model();
  training_ = plan_changed_ = true;
  stops_ = false;
  for (Worker* m : members_) player_.fetch(*m);
  begin_step();
}

// ----------------------------------------------------------------------- steps

// Members whose records are there compute; the others wait for theirs, each for itself.
void Collective::begin_step() {
  if (complete()) return after(exchange_s(), &Collective::finish_phase);
  step_began_ = work_ends_ = player_.now();
  for (Worker* m : members_) {
    m->records = m->computed = 0;
    m->own_s = 0;
    m->waits_for_data = true;
  }
  shared_step_ = shared_ && shares_next_;
  if (shared_step_) shared_->begin(members_, generation_, step_, [this] { computed_all(); });
  look_for_data();
}

void Collective::look_for_data() {
  const MonoTime now = player_.now();
  const bool patient = now < step_began_ + worker::kDataPatience;
  const std::uint64_t turn = turn_;
  bool waits = false;
  for (Worker* m : members_) {
    if (!m->waits_for_data) continue;
    player_.fetch(*m);
    m->take();
    if (m->waits_for_data && patient) {
      waits = true;
    } else {
      m->waits_for_data = false;
      compute(*m);
      if (turn != turn_) return;  // its device is too small, and the generation is over
    }
  }
  if (waits) return after(kLookS, &Collective::look_for_data);
  if (!shared_step_)
    after(to_seconds(std::max(work_ends_, now) - now) + exchange_s(), &Collective::conclude);
}

void Collective::computed_all() { after(exchange_s(), &Collective::conclude); }

void Collective::compute(Worker& m) {
  if (!player_.fits(m)) return player_.out_of_memory(m);
  m.short_of_data = m.records < m.share.samples();
  if (shared_step_) {
    shared_->opened(m);
    return player_.fetch(m);
  }
  m.computed = m.records;
  m.own_s = player_.work(m, m.records);
  work_ends_ = std::max(work_ends_, player_.now() + from_seconds(m.own_s));
  player_.fetch(m);
}

void Collective::conclude() {
  const double step_s = to_seconds(player_.now() - step_began_);
  std::uint64_t records = 0;
  bool all_hold_it = true;
  for (const Worker* m : members_) {
    records += m->records;
    all_hold_it = all_hold_it && m->held.version == members_.front()->held.version;
  }
  const bool switches =
      all_hold_it && members_.front()->held.version > members_.front()->share.version;
  step_ = step_.next();
  state_phase_ = phase_.phase;
  counted_ += records;
  log_step();
  if (trial_) compare_kinds();
  const std::uint64_t turn = turn_;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    conclude_of(*members_[rank], switches, step_s);
    if (turn != turn_) return;  // an earlier input in this loop has ended the generation
  }
  plan_changed_ = switches;
  if (checkpoint_ordered_ > checkpoint_) write_checkpoint(checkpoint_ordered_);
  if (turn != turn_) return;
  if (stops_) return after(exchange_s(), &Collective::finish_phase);
  records == 0 ? after(kIdleWaitS, &Collective::begin_step) : begin_step();
}

// As the member of rank 0 does: its slot, which says what kind the next step is, is sent before it
// knows how long the present one takes.
void Collective::compare_kinds() {
  shares_next_ = trial_->shares();
  const bool whole = std::ranges::none_of(members_, &Worker::short_of_data);
  if (!whole || plan_changed_) return;
  trial_->concluded(
      {shared_step_, player_.now() - step_began_, shared_step_ ? shared_->asked() : Duration{}});
}

void Collective::conclude_of(Worker& m, bool switches, double step_s) {
  m.measured(step_s - m.own_s, !plan_changed_ && !m.short_of_data, player_.now());
  m.stable_place = m.place;
  m.place += m.records;
  if (switches) m.share = m.held;
  m.set_hold(player_.now(), switches);
  if (player_.now() - m.progress_sent >= kProgressEvery) tell_progress(m, false);
}

// Records which members' records made the step, as the slots say. The report is repeated until it
// is recorded, so it costs time if nobody records it.
void Collective::log_step() {
  if (!player_.is_recorded()) return;
  std::vector<std::uint64_t> places, records;
  for (const Worker* m : members_) {
    places.push_back(m->place + m->records);
    records.push_back(m->records);
  }
  log_.add(step_, phase_.phase, places, records);
}

void Collective::tell_progress(Worker& m, bool done) {
  m.progress_sent = player_.now();
  m.feed.commit(m.stable_place, {}, player_.now());
  m.feed.place_was_sent(phase_.phase, m.stable_place);
  wire::Progress progress;
  progress.phase = phase_.phase;
  progress.step = step_;
  progress.place = m.stable_place;
  progress.samples = phase_.records - remaining_ + counted_;
  progress.plan = m.share.version;
  progress.done = done;
  if (m.rank == 0 && player_.now() - steps_told_ >= kTellSteps) {
    steps_told_ = player_.now();
    progress.history = log_.history();
  }
  player_.say(m, std::move(progress));
}

// After the empty step, which makes the last data step stable, each member reports that the phase
// is done, leaves or joins again.
void Collective::finish_phase() {
  step_ = step_.next();
  for (Worker* m : members_) m->records = m->computed = 0;
  log_step();
  training_ = false;
  const bool done = complete();
  const std::vector<Worker*> members = members_;
  for (Worker* m : members) m->stable_place = m->place;
  if (!done) dissolve();
  // The last member's report may begin the next phase at once.
  const Generation generation = generation_;
  for (Worker* m : members) {
    if (!m->alive) continue;
    tell_progress(*m, done);
    if (const auto code = std::exchange(m->leaves, {})) {
      player_.leave(*m, *code);
    } else if (!done || generation != generation_) {
      if (m->in_group) join(*m);
    }
  }
}

void Collective::write_checkpoint(std::uint64_t number) {
  std::vector<wire::MemberPlace> places;
  for (const Worker* m : members_) places.push_back({m->member.worker, m->place});
  write(number, std::move(places));
}

// Where rows are on servers, the job daemon orders it like a checkpoint.
void Collective::write_final_model() {
  finishes_ = rows_.has_value();
  if (!rows_) return write(std::max(checkpoint_, checkpoint_ordered_) + 1, {});
  if (checkpoint_ordered_ > checkpoint_) write(checkpoint_ordered_, {});
}

void Collective::write(std::uint64_t number, std::vector<wire::MemberPlace> places) {
  checkpoint_ = number;
  wire::CheckpointWritten written;
  written.number = number;
  written.phase = phase_.phase;
  written.step = step_;
  written.directory = "simulated";
  written.places = std::move(places);
  player_.say(*members_.front(), std::move(written));
  if (rows_) rows_->written(number, step_);
}

}  // namespace antdt::fleet
