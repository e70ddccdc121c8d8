// Generations, phases and checkpoints.
#include <algorithm>

#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
namespace {

// How long to wait before the servers are asked again to write the model.
constexpr Duration kModelAgain = std::chrono::seconds(2);

JobState state_in(const wire::PhaseStart& phase) {
  return phase.what == wire::PhaseKind::kTrain  ? JobState::kTraining
         : phase.what == wire::PhaseKind::kEval ? JobState::kEvaluating
                                                : JobState::kFinishing;
}

}  // namespace

void Training::on(const WorkerJoined& e) {
  if (e.collective && !life_.welcomes(e.member)) {
    if (WorkerProcess* late = life_.find_mutable(e.member); late != nullptr && !late->leaving()) {
      late->ask_to_leave(life_.seconds() + to_seconds(life_.spec.stop_grace));
    }
    // the journal must know, after a restart too, that the process leaves because we asked it to
    out_.emplace_back(PersistImage{});
    out_.emplace_back(AskToLeave{e.member, {"the job is at its end", kExitResumable}});
    return;
  }
  if (WorkerProcess* worker = life_.find_mutable(e.member); worker != nullptr && worker->join()) {
    out_.emplace_back(PersistImage{});
    turn_.servers.order_last_cut();
  }
  if (e.collective || life_.stopping()) return;
  life_.image.collective = false;
  if (life_.phases.number() == 0) open_phase(1);
}

void Training::on(const GenerationSettled& e) {
  life_.phases.settle(e.members);
  for (const Member member : e.members) {
    if (WorkerProcess* w = life_.find_mutable(member)) w->quick_failures = 0;
  }
  for (WorkerProcess& w : life_.workers) {
    if (w.is_server()) w.quick_failures = 0;
  }
  // Servers read their slices after they are a group: there training goes on with the next step.
  if (life_.spec.servers == 0) life_.incidents.end(life_.seconds());
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{
      "generation",
      fmt::format("generation {} is settled: {} workers{}{}", e.generation, e.members.size(),
                  e.collective.empty() ? "" : ", collective: ", e.collective)});
  if (life_.stopping()) return;
  if (life_.phases.number() == 0) return open_phase(1);
  // The run is resumed after the last incarnation had already gone back to a checkpoint.
  if (life_.state() == JobState::kForming) life_.set_state(state_in(life_.phases.open()));
  out_.emplace_back(AnnouncePhase{life_.phases.open()});
}

void Training::on(const GenerationEnded&) {
  life_.phases.unsettle();
  turn_.moves.end_moves();
  life_.image.last_cut = 0;
  if (!life_.checkpoints.ends_with_generation()) return;
  life_.checkpoints.give_up();
  out_.emplace_back(PersistImage{});
  if (life_.ending.awaits_checkpoint()) turn_.stopping.stop_all(life_.spec.stop_grace);
}

void Training::on(const StepCompleted&) { progress(); }
void Training::on(const RecordsCommitted&) { progress(); }

void Training::progress() {
  goes_on();
  const bool late = life_.image.collective && !life_.phases.settled();
  if (life_.incidents.progress(life_.now, late)) out_.emplace_back(PersistImage{});
}

// A generation that settles ends an incident where members sum among themselves
// (GenerationSettled). Groups of servers outlive the loss of a worker or a backup, and loose
// clients have none.
void Training::goes_on() {
  const bool sums = life_.image.collective && life_.spec.servers == 0;
  if (sums || !life_.incidents.is_open()) return;
  if (life_.spec.servers > 0 && !life_.phases.settled()) return;  // a step of the group before
  life_.incidents.end(life_.seconds());
  out_.emplace_back(PersistImage{});
}

void Training::look_at_programs() {
  if (life_.spec.protocol == Protocol::kAntdt) return;
  bool any = false;
  for (const WorkerProcess& w : life_.workers) {
    // The others go on without those that have done their work, or have left as they were asked to.
    const bool is_done =
        w.state == WorkerProcess::kExited && classify(w, true) == FailureClass::kNone;
    if (is_done || w.state == WorkerProcess::kRemoved) continue;
    any = true;
    if (!w.running() || life_.seconds() - w.started_at_s <= kRanForSeconds) return;
  }
  if (any) life_.incidents.run_well(life_.now);
}

void Training::open_phase(std::uint64_t phase) {
  goes_on();  // evaluations make no steps
  life_.phases.open(phase);
  const wire::PhaseStart start = life_.phases.open();
  if (phase == 1) life_.checkpoints.begin(life_.now);
  life_.set_state(state_in(start));
  if (start.what == wire::PhaseKind::kFinish) {
    for (WorkerProcess& w : life_.workers) {  // a worker that joins now is too late to be of use
      const bool late = w.state == WorkerProcess::kWaiting && !w.is_server();
      if (late) w.remove();
    }
  }
  out_.emplace_back(PersistImage{});
  out_.emplace_back(OpenPhase{start});
  if (start.what != wire::PhaseKind::kFinish) return;
  turn_.servers.give_up_servers("all is trained");
  if (life_.spec.servers > 0) order_checkpoint();  // the servers hold the model and write it
  if (life_.spec.external) turn_.stopping.end_if_all_left();
}

void Training::on(const PhaseDrained& e) {
  if (e.phase != life_.phases.number()) return;
  life_.phases.drain(e.trained);
  advance_if_complete();
}

// Every member may say it, and says it again until it has heard what follows. Also while the job
// stops: its members may still wait for a checkpoint.
void Training::on(const TrainingEnded& e) {
  const wire::PhaseStart open = life_.phases.open();
  const bool trains = open.what == wire::PhaseKind::kTrain;
  const bool is_last = open.phase + 1 >= life_.phases.last();
  const bool can_end = trains || (open.what == wire::PhaseKind::kEval && !is_last);
  if (!can_end || life_.phases.ending()) return;
  life_.phases.end(e.reason);
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{"training-ended", fmt::format("the program ends the training in "
                                                            "epoch {}: {}",
                                                            open.epoch.value + 1, e.reason)});
  if (trains) out_.emplace_back(CutPhase{open.phase, e.reason});
}

void Training::on(const WorkerDone& e) {
  life_.phases.done(e.member.worker, e.phase);
  advance_if_complete();
}

void Training::advance_if_complete() {
  if (!life_.phases.drained() || life_.stopping() || life_.phases.number() >= life_.phases.last())
    return;
  if (life_.image.last_cut > 0) return;  // the last checkpoint of the servers belongs to this phase
  // The next generation goes on in this phase.
  if (life_.image.collective && !life_.phases.settled()) return;
  if (life_.state() == JobState::kTraining && awaits_workers()) return;
  open_phase(life_.phases.number() + 1);
}

bool Training::awaits_workers() const {
  if (life_.image.collective) {
    // All members must be out of the last collective before the next phase. They report it one
    // after the other, so the last one is looked at first.
    const std::vector<Member>& group = life_.phases.group();
    const auto trains_on = [&](Member member) {
      return life_.is_current(member) && !life_.phases.is_done(member.worker);
    };
    if (std::any_of(group.rbegin(), group.rend(), trains_on)) return true;
  }
  if (!is_shadow(life_.spec.sync)) return false;
  // A replica that is not done has not exchanged its last steps, which the next phase needs. Who
  // lives says again that it is done, so nobody is awaited who has died.
  return std::ranges::any_of(life_.workers, [&](const WorkerProcess& w) {
    return !w.is_server() && w.state == WorkerProcess::kJoined &&
           !life_.phases.is_done(w.place.worker);
  });
}

void Training::on(const CheckpointRestored& e) {
  life_.phases.go_back_to(e.phase, e.records, e.ended);
  life_.incidents.went_back(e.step);
  life_.checkpoints.give_up();
  life_.checkpoints.begin(life_.now);
  life_.image.model_kept = false;
  life_.set_state(e.phase > 0 ? state_in(life_.phases.open()) : JobState::kForming);
  out_.emplace_back(PersistImage{});
}

void Training::order_checkpoint() {
  const std::uint64_t number = life_.checkpoints.order(life_.now);
  out_.emplace_back(PersistImage{});
  out_.emplace_back(OrderCheckpoint{number, number == life_.image.last_cut});
}

void Training::on(const CheckpointWriteBegun& e) { life_.checkpoints.begun(e.number); }

void Training::on(const CheckpointConcluded& e) {
  const bool is_of_training = life_.checkpoints.precedes_model(e.number, life_.spec.servers > 0);
  const bool is_earlier = life_.checkpoints.answered(e.number).is_earlier;
  const bool changes_servers = turn_.servers.is_last_cut(e);
  if (e.error.empty()) {
    life_.checkpoints.stored(e.number);
    goes_on();  // after the last phase there are no steps
  } else if (life_.checkpoints.failed(e.error)) {
    const bool is_model = life_.state() == JobState::kFinishing && !is_of_training;
    out_.emplace_back(
        WriteNote{"checkpoint-failed",
                  is_model ? fmt::format("all records are trained, and the model cannot be kept: "
                                         "{}; the job waits, and goes on by itself when it can",
                                         e.error)
                           : e.error});
  }
  out_.emplace_back(PersistImage{});
  if (changes_servers) return turn_.servers.change_servers();
  if (life_.state() == JobState::kFinishing) {
    // If it was made in training, it is not the trained model.
    if (is_of_training) return;
    if (!e.error.empty()) return;  // the members hold the model, and write it again
    life_.image.model_kept = true;
    out_.emplace_back(AskAllToLeave{{"the job is done", 0}});
    for (WorkerProcess& w : life_.workers) {  // a worker that has not joined cannot be told
      if (w.is_server()) continue;
      if (w.state == WorkerProcess::kWaiting) w.remove();
      const bool deaf = w.state == WorkerProcess::kPlanned || w.state == WorkerProcess::kStarted;
      if (deaf) turn_.stopping.stop_worker(w, life_.spec.stop_grace);
    }
    return turn_.stopping.end_if_all_left();
  }
  if (!life_.stopping()) return;
  life_.image.outcome->resumable = life_.checkpoints.any_stored();
  if (!life_.ending.awaits_checkpoint()) return;
  if (is_earlier && life_.checkpoints.pending()) return;  // a stop waits for its own checkpoint
  if (!e.error.empty() && e.older_may_come) return;       // or, if that failed, for the one before
  if (!life_.phases.settled()) return turn_.stopping.stop_all(life_.spec.stop_grace);
  life_.ending.checkpoint_stored(life_.now);
  out_.emplace_back(AskAllToLeave{{life_.image.outcome->first_cause, kExitResumable}});
}

void Training::on(const CheckpointBytesMoved&) {
  life_.checkpoints.moved(life_.now);
  life_.ending.checkpoint_moved(life_.now);
}

void Training::look_at_checkpoints() {
  const CheckpointOrders& orders = life_.checkpoints;
  // The servers could not write the model, so they write it again when they can.
  const bool again = life_.spec.servers > 0 && life_.state() == JobState::kFinishing &&
                     life_.phases.settled() && !life_.image.model_kept && !orders.pending() &&
                     orders.since_order(life_.now) >= kModelAgain;
  if (again) return order_checkpoint();
  const bool due = life_.spec.checkpoint_every > Duration::zero() && life_.image.collective &&
                   life_.phases.settled() && life_.spec.protocol == Protocol::kAntdt &&
                   life_.state() == JobState::kTraining &&
                   orders.since_order(life_.now) >= life_.spec.checkpoint_every;
  // If the order seems lost, another one is due. While a checkpoint is being written, none is.
  const bool free = orders.seems_lost(life_.now) || !orders.pending();
  if (due && life_.image.last_cut == 0 && free) order_checkpoint();
}

}  // namespace antdt::ctl::lifecycle
