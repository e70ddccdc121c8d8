// How a job ends: it is stopped or fails, and is over when all processes have left.
#include <algorithm>
#include <utility>

#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
void Stopping::on(const StopRequested& e) {
  if (!life_.stopping()) {
    out_.emplace_back(WriteNote{"stopping", e.reason});
    return stop_with(
        {JobEnd::kStopped, 75, ExitClass::kStopped, life_.checkpoints.any_stored(), e.reason},
        e.grace);
  }
  life_.set_state(JobState::kStopping);
  stop_all(e.grace);
  end_if_all_left();
}

// While the workers evaluate, the model stands still, and can be written between two batches. Where
// a part of it is on servers, members and servers write only after a step that both have.
bool Stopping::can_checkpoint() const {
  const bool evaluates =
      life_.state() == JobState::kEvaluating && life_.spec.sync != SyncStrategy::kHybrid;
  return (life_.state() == JobState::kTraining || evaluates) && life_.image.collective &&
         life_.phases.settled() && life_.spec.protocol == Protocol::kAntdt &&
         life_.phases.number() > 0;
}

// The workers write a checkpoint first, if there is time for one. While members meet, none can be
// ordered; then a checkpoint that is already being written is waited for.
void Stopping::stop_with(Outcome outcome, Duration grace) {
  life_.image.outcome = std::move(outcome);
  turn_.servers.give_up_servers("the job is stopping");
  const bool orders = can_checkpoint();
  life_.set_state(JobState::kStopping);
  if ((orders || life_.checkpoints.being_written()) && grace > Duration::zero()) {
    if (orders) turn_.training.order_checkpoint();
    return life_.ending.await_checkpoint(grace, life_.now);  // waits for CheckpointStored
  }
  stop_all(grace);
  end_if_all_left();
}

void Stopping::on(const JobFailed& e) {
  Outcome outcome{JobEnd::kFailed, e.code, e.exit_class, life_.checkpoints.any_stored(), e.reason};
  if (e.checkpoint_within > Duration::zero() && !life_.stopping()) {
    return stop_with(std::move(outcome), e.checkpoint_within);
  }
  fail(std::move(outcome));
  end_if_all_left();
}

void Stopping::fail(Outcome outcome) {
  if (life_.stopping()) return;  // failures that follow from the first cause are not the cause
  life_.image.outcome = std::move(outcome);
  turn_.servers.give_up_servers("the job is stopping");
  life_.set_state(JobState::kStopping);
  stop_all(life_.spec.stop_grace);
}

// Servers are stopped after the workers, which may still have something to send to them.
void Stopping::stop_all(Duration grace) {
  life_.ending.everybody_leaves(grace, life_.now);
  const bool workers_run = std::ranges::any_of(
      life_.workers, [](const WorkerProcess& w) { return w.running() && !w.is_server(); });
  for (WorkerProcess& w : life_.workers) {
    w.stop_waiting();
    const bool later = w.is_server() && workers_run && grace > Duration::zero();
    if (w.running() && !later) stop_worker(w, grace);
  }
  out_.emplace_back(PersistImage{});
}

void Stopping::stop_worker(WorkerProcess& worker, Duration grace) {
  worker.ask_to_stop(life_.seconds() + to_seconds(grace));
  out_.emplace_back(StopWorker{worker.member(), worker.place.host, grace});
}

bool Stopping::look_at_deadlines() {
  if (life_.stopping() && !life_.ending.has_begun()) {
    stop_all(life_.spec.stop_grace);  // an earlier incarnation may not have sent the orders
    end_if_all_left();
    return true;
  }
  if (life_.ending.is_late(life_.now)) {
    if (life_.ending.kill()) {
      stop_all(Duration::zero());
    } else {  // some agent does not answer; it stops its orphans by itself
      for (WorkerProcess& w : life_.workers) {
        if (w.state == WorkerProcess::kWaiting) w.stop_waiting();
        if (!w.running()) continue;
        out_.emplace_back(ReleaseWorker{
            w.member(),
            fmt::format("its agent on {} does not answer", life_.host_name(w.place.host)), false,
            false});
        w.forget();
      }
    }
    end_if_all_left();
    return true;
  }
  for (WorkerProcess& w : life_.workers) {
    const bool late =
        w.running() && w.leaving() && !w.asked_to_stop() && life_.seconds() >= *w.leaves_until_s;
    if (!late) continue;
    // `antdt evict` finds this by its beginning.
    out_.emplace_back(WriteNote{
        "killed-late", fmt::format("{} (attempt {}) was asked to leave, and is killed because it "
                                   "had not left when its time for that was over",
                                   w.place.worker, w.attempt)});
    stop_worker(w, Duration::zero());
  }
  return life_.stopping();
}

// If all others are lost before the model is kept, a worker that has left, or was not wanted any
// more, is started again: the last checkpoint can go on with one worker.
bool Stopping::bring_one_back() {
  const bool can = life_.spec.protocol == Protocol::kAntdt &&
                   life_.spec.restart == Restart::kMember && life_.image.collective &&
                   !life_.spec.external && !life_.image.model_kept;
  const auto left = std::ranges::find_if(life_.workers, [](const WorkerProcess& w) {
    return w.state == WorkerProcess::kRemoved && !w.is_server();
  });
  if (!can || left == life_.workers.end()) return false;
  left->begin_again(life_.seconds());
  left->waits_until_s = 0;
  out_.emplace_back(PersistImage{});
  out_.emplace_back(
      WriteNote{"back", fmt::format("{} comes back: nobody else is left", left->place.worker)});
  turn_.starts.start_waiting();
  turn_.starts.expect();
  return true;
}

Outcome Stopping::outcome_at_the_end() const {
  if (life_.image.outcome) {
    // A job that is done has no cause. For another outcome, an earlier incarnation may have ended
    // before it determined the cause.
    const bool unsaid =
        life_.image.outcome->state != JobEnd::kDone && life_.image.outcome->first_cause.empty();
    return unsaid ? turn_.failing.outcome_of_failures() : *life_.image.outcome;
  }
  if (life_.spec.protocol == Protocol::kAntdt && life_.state() != JobState::kFinishing) {
    return {JobEnd::kFailed, 1, ExitClass::kProgram, life_.checkpoints.any_stored(),
            "every worker ended before the records of the job were all trained"};
  }
  if (life_.spec.protocol == Protocol::kAntdt && life_.image.collective && !life_.spec.external &&
      !life_.image.model_kept) {
    return {JobEnd::kFailed, 1, ExitClass::kProgram, life_.checkpoints.any_stored(),
            "every worker ended before the trained model was kept"};
  }
  return {JobEnd::kDone, 0, ExitClass::kDone, false, ""};
}

void Stopping::let_servers_go() {
  if (life_.ending.has_begun() && std::ranges::all_of(life_.workers, [](const WorkerProcess& w) {
        return !w.running() || w.leaving() || w.asked_to_stop();
      })) {
    return;
  }
  life_.image.outcome = outcome_at_the_end();
  life_.ending.everybody_leaves(life_.spec.stop_grace, life_.now);
  for (WorkerProcess& w : life_.workers) {
    if (w.state == WorkerProcess::kWaiting) w.remove();
    if (!w.running()) continue;
    if (w.state != WorkerProcess::kJoined) {
      stop_worker(w, life_.spec.stop_grace);
    } else {
      w.ask_to_leave(life_.seconds() + to_seconds(life_.spec.stop_grace));
      out_.emplace_back(AskToLeave{w.member(), {"every worker has left", 0}});
    }
  }
  out_.emplace_back(PersistImage{});
}

void Stopping::end_if_all_left() {
  const auto open = [](const WorkerProcess& w) {
    return w.running() || w.state == WorkerProcess::kWaiting;
  };
  const auto open_worker = [&](const WorkerProcess& w) { return open(w) && !w.is_server(); };
  if (std::ranges::any_of(life_.workers, open_worker)) return;
  if (!life_.image.outcome && bring_one_back()) return;
  if (std::ranges::any_of(life_.workers, open)) return let_servers_go();
  const Outcome outcome = outcome_at_the_end();
  life_.image.outcome = outcome;
  life_.set_state(state_after(outcome.state));
  life_.ending.end();
  out_.emplace_back(PersistImage{});
  out_.emplace_back(EndJob{outcome});
}

}  // namespace antdt::ctl::lifecycle
