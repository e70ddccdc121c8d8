// How a job ends: stopping, failing, and when everybody has left.
#include <algorithm>

#include "ctl/lifecycle.h"

namespace antdt::ctl {
namespace {

// How long to wait for exits after everybody was sent SIGKILL.
constexpr Duration kKillDeadline = std::chrono::seconds(5);
// How long it may take until a member says that it writes a checkpoint.
constexpr Duration kCheckpointPatience = std::chrono::minutes(5);
// How long a copy between hosts may pause while the job stops.
constexpr Duration kCopyPatience = std::chrono::seconds(10);
// How long to wait before the servers are asked again to write the model.
constexpr Duration kModelAgain = std::chrono::seconds(2);

}  // namespace

// --------------------------------------------------------------------- the end

void Lifecycle::on(const job::SaidBye& e, Effects&) {
  if (WorkerProcess* worker = find_mutable(e.member)) worker->said_bye = true;
}

void Lifecycle::on(const job::StopAsked& e, Effects& out) {
  if (!stopping()) {
    out.emplace_back(job::Note{"stopping", e.reason});
    return stop_with({"stopped", 75, "stopped", image_.checkpoints_stored > 0, e.reason}, e.grace,
                     out);
  }
  set_state(JobState::kStopping);
  stop_all(e.grace, out);
  end_if_all_left(out);
}

// Those who train write a checkpoint first, if there is time for one.
void Lifecycle::stop_with(Outcome outcome, Duration grace, Effects& out) {
  image_.outcome = std::move(outcome);
  give_up_servers("the job is stopping", out);
  const bool can_checkpoint = state() == JobState::kTraining && image_.collective && settled_ &&
                              spec_.protocol == Protocol::kAntdt && image_.phase > 0;
  set_state(JobState::kStopping);
  if (can_checkpoint && grace > Duration::zero()) {
    order_checkpoint(out);  // answered by CheckpointStored, then everybody leaves
    stop_deadline_ = now_ + grace;
    fails_with_checkpoint_ = image_.outcome->state == "failed";
    return;
  }
  stop_all(grace, out);
  end_if_all_left(out);
}

// Who stops waits for a checkpoint that comes, too.
void Lifecycle::on(const job::FilesMoved&, Effects&) {
  files_moved_ = now_;
  const bool waits = stopping() && image_.checkpoint_pending && stop_deadline_ && !killed_;
  if (waits) stop_deadline_ = std::max(*stop_deadline_, now_ + kCopyPatience);
}

void Lifecycle::on(const job::Failed& e, Effects& out) {
  Outcome outcome{"failed", e.code, e.exit_class, image_.checkpoints_stored > 0, e.reason};
  if (e.checkpoint_within > Duration::zero() && !stopping()) {
    return stop_with(std::move(outcome), e.checkpoint_within, out);
  }
  fail(std::move(outcome), out);
  end_if_all_left(out);
}

void Lifecycle::fail(Outcome outcome, Effects& out) {
  if (stopping()) return;  // what follows from the first cause is not one
  image_.outcome = std::move(outcome);
  give_up_servers("the job is stopping", out);
  set_state(JobState::kStopping);
  stop_all(spec_.stop_grace, out);
}

// Servers after the workers, which may still have something to say to them.
void Lifecycle::stop_all(Duration grace, Effects& out) {
  stop_deadline_ = now_ + grace + kKillDeadline;
  const bool workers_run = std::ranges::any_of(
      image_.workers, [](const WorkerProcess& w) { return w.running() && !w.is_server(); });
  for (WorkerProcess& w : image_.workers) {
    if (w.state == WorkerProcess::kWaiting) w.state = WorkerProcess::kExited;
    const bool later = w.is_server() && workers_run && grace > Duration::zero();
    if (w.running() && !later) stop_worker(w, grace, out);
  }
  out.emplace_back(job::SaveImage{});
}

void Lifecycle::stop_worker(WorkerProcess& worker, Duration grace, Effects& out) {
  worker.asked_to_stop = true;
  worker.killed_from_s = seconds() + to_seconds(grace);
  out.emplace_back(job::StopWorker{worker.member(), worker.place.host, grace});
}

void Lifecycle::on(const job::Tick&, Effects& out) {
  if (stopping() && !stop_deadline_) {  // by an earlier incarnation, which may not have said it
    stop_all(spec_.stop_grace, out);
    return end_if_all_left(out);
  }
  if (stop_deadline_ && now_ >= *stop_deadline_) {
    const bool was_killed = killed_;
    killed_ = true;
    if (!was_killed) {
      stop_all(Duration::zero(), out);
    } else {  // some agent does not answer: it stops its orphans by itself
      for (WorkerProcess& w : image_.workers) w.state = WorkerProcess::kExited;
    }
    end_if_all_left(out);
    return;
  }
  for (WorkerProcess& w : image_.workers) {
    const bool late = w.running() && w.leaving && !w.asked_to_stop && seconds() >= w.leaves_until_s;
    if (late) stop_worker(w, Duration::zero(), out);
  }
  if (stopping()) return;
  start_waiting(out);
  look_at_last_cut(out);
  // What the servers could not write is written when they can.
  const bool again = spec_.servers > 0 && state() == JobState::kFinishing && settled_ &&
                     !image_.model_kept && !image_.checkpoint_pending &&
                     now_ - last_checkpoint_ >= kModelAgain;
  if (again) return order_checkpoint(out);
  const bool due = spec_.checkpoint_every > Duration::zero() && image_.collective && settled_ &&
                   spec_.protocol == Protocol::kAntdt && state() == JobState::kTraining &&
                   now_ - last_checkpoint_ >= spec_.checkpoint_every;
  // The order may be lost: then another one is due. What is being written takes its time.
  const bool lost =
      being_written_ == 0 && now_ - std::max(last_checkpoint_, files_moved_) >= kCheckpointPatience;
  if (due && image_.last_cut == 0 && (lost || !image_.checkpoint_pending)) order_checkpoint(out);
}

// Whoever has left, or was not wanted any more, is wanted again when the others
// are lost before the model is kept: the last checkpoint goes on with one.
bool Lifecycle::bring_one_back(Effects& out) {
  const bool can = spec_.protocol == Protocol::kAntdt && spec_.restart == Restart::kMember &&
                   image_.collective && !spec_.external && !image_.model_kept;
  const auto left = std::ranges::find_if(image_.workers, [](const WorkerProcess& w) {
    return w.state == WorkerProcess::kRemoved && !w.is_server();
  });
  if (!can || left == image_.workers.end()) return false;
  wait_for_place(*left);
  left->waits_until_s = 0;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(
      job::Note{"back", fmt::format("{} comes back: nobody else is left", left->place.worker)});
  start_waiting(out);
  expect(out);
  return true;
}

Outcome Lifecycle::outcome_at_the_end() const {
  if (image_.outcome) {
    // Done has no cause: it was decided, and an earlier incarnation did not say it.
    const bool unsaid = image_.outcome->state != "done" && image_.outcome->first_cause.empty();
    return unsaid ? outcome_of(image_.incident) : *image_.outcome;
  }
  if (spec_.protocol == Protocol::kAntdt && state() != JobState::kFinishing) {
    return {"failed", 1, "program", image_.checkpoints_stored > 0,
            "every worker ended before the records of the job were all trained"};
  }
  if (spec_.protocol == Protocol::kAntdt && image_.collective && !spec_.external &&
      !image_.model_kept) {
    return {"failed", 1, "program", image_.checkpoints_stored > 0,
            "every worker ended before the trained model was kept"};
  }
  return {"done", 0, "done", false, ""};
}

void Lifecycle::let_servers_go(Effects& out) {
  if (stop_deadline_ && std::ranges::all_of(image_.workers, [](const WorkerProcess& w) {
        return !w.running() || w.leaving || w.asked_to_stop;
      })) {
    return;
  }
  image_.outcome = outcome_at_the_end();
  stop_deadline_ = now_ + spec_.stop_grace + kKillDeadline;
  for (WorkerProcess& w : image_.workers) {
    if (w.state == WorkerProcess::kWaiting) w.state = WorkerProcess::kRemoved;
    if (!w.running()) continue;
    if (w.state != WorkerProcess::kJoined) {
      stop_worker(w, spec_.stop_grace, out);
    } else {
      w.leaving = true;
      w.leaves_until_s = seconds() + to_seconds(spec_.stop_grace);
      out.emplace_back(job::LeaveWorker{w.member(), {"every worker has left", 0}});
    }
  }
  out.emplace_back(job::SaveImage{});
}

void Lifecycle::end_if_all_left(Effects& out) {
  const auto open = [](const WorkerProcess& w) {
    return w.running() || w.state == WorkerProcess::kWaiting;
  };
  const auto open_worker = [&](const WorkerProcess& w) { return open(w) && !w.is_server(); };
  if (std::ranges::any_of(image_.workers, open_worker)) return;
  if (!image_.outcome && bring_one_back(out)) return;
  if (std::ranges::any_of(image_.workers, open)) return let_servers_go(out);
  const Outcome outcome = outcome_at_the_end();
  image_.outcome = outcome;
  set_state(outcome.state == "done"      ? JobState::kDone
            : outcome.state == "stopped" ? JobState::kStopped
                                         : JobState::kFailed);
  ended_ = true;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::End{outcome});
}

}  // namespace antdt::ctl
