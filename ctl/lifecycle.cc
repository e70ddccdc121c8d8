#include "ctl/lifecycle.h"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace antdt::ctl {
namespace {

// How long to wait for exits after everybody was sent SIGKILL.
constexpr Duration kKillDeadline = std::chrono::seconds(5);

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

// What the exit looks like, as the end of a sentence.
std::string describe_exit(const WorkerProcess& w) {
  if (!w.error.empty()) return fmt::format("could not be executed: {}", w.error);
  if (w.signal != 0) return fmt::format("was killed by {}", signal_name(w.signal));
  if (w.code == kExitCollectiveBroken) return "lost its connection to the other workers";
  return fmt::format("exited with code {}", w.code);
}

// An exit that follows from our own request to stop.
bool ends_as_asked(const WorkerProcess& w) {
  if (!w.asked_to_stop) return false;
  return w.code == 0 || w.code == kExitResumable || w.signal == SIGTERM ||
         w.code == 128 + SIGTERM || (w.signal == SIGKILL && w.exited_at_s >= w.killed_from_s);
}

bool is_good(const WorkerProcess& w) { return w.error.empty() && w.signal == 0 && w.code == 0; }

}  // namespace

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::kStarting:
      return "starting";
    case JobState::kForming:
      return "forming";
    case JobState::kTraining:
      return "training";
    case JobState::kEvaluating:
      return "evaluating";
    case JobState::kFinishing:
      return "finishing";
    case JobState::kStopping:
      return "stopping";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
  }
  return "unknown";
}

std::vector<job::Effect> Lifecycle::step(const job::Event& event, MonoTime now) {
  now_ = now;
  if (!began_) began_ = now;
  Effects out;
  if (ended_) return out;
  std::visit([&](const auto& e) { on(e, out); }, event);
  return out;
}

double Lifecycle::seconds() const { return to_seconds(now_ - *began_); }

const WorkerProcess* Lifecycle::find(WorkerId worker) const {
  const auto found = std::ranges::find(image_.workers, worker,
                                       [](const WorkerProcess& w) { return w.place.worker; });
  return found == image_.workers.end() ? nullptr : &*found;
}

bool Lifecycle::is_current(Member member) const {
  const WorkerProcess* worker = find(member.worker);
  return worker != nullptr && worker->attempt == member.attempt;
}

WorkerProcess* Lifecycle::find_mutable(Member member) {
  return is_current(member) ? const_cast<WorkerProcess*>(find(member.worker)) : nullptr;
}

std::uint64_t Lifecycle::last_phase() const {
  return spec_.epochs * (spec_.eval_records > 0 ? 2ULL : 1ULL) + 1;
}

wire::PhaseStart Lifecycle::describe(std::uint64_t phase) const {
  wire::PhaseStart start;
  start.phase = phase;
  if (phase == 0) return start;
  if (phase >= last_phase()) {
    start.what = "finish";
    start.epoch = Epoch{spec_.epochs};
    return start;
  }
  const std::uint64_t index = phase - 1;
  const std::uint64_t phases_an_epoch = spec_.eval_records > 0 ? 2 : 1;
  const bool train = index % phases_an_epoch == 0;
  start.what = train ? "train" : "eval";
  start.epoch = Epoch{static_cast<std::uint32_t>(index / phases_an_epoch)};
  start.records = train ? spec_.train_records : spec_.eval_records;
  return start;
}

void Lifecycle::on(const job::Placed& e, Effects& out) {
  for (const PlacedWorker& place : e.workers) {
    WorkerProcess worker;
    worker.place = place;
    worker.attempt = Attempt{1};
    image_.workers.push_back(std::move(worker));
  }
  set_state(JobState::kStarting);
  if (spec_.external) {
    image_.collective = false;
    open_phase(1, out);
    return;
  }
  out.emplace_back(job::SaveImage{});
  for (const WorkerProcess& w : image_.workers) {
    out.emplace_back(job::StartWorker{w.member(), w.place.host});
  }
  if (spec_.protocol == Protocol::kAntdt) out.emplace_back(job::ExpectMembers{image_.workers});
}

void Lifecycle::on(const job::Started& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || worker->state != WorkerProcess::kPlanned) return;
  worker->state = WorkerProcess::kStarted;
  worker->pid = e.pid;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{
      "worker-started",
      fmt::format("{} started on {} (pid {})", e.member.worker, worker->place.host, e.pid)});
  const bool all = std::ranges::none_of(
      image_.workers, [](const WorkerProcess& w) { return w.state == WorkerProcess::kPlanned; });
  if (!all || state() != JobState::kStarting) return;
  set_state(spec_.protocol == Protocol::kAntdt ? JobState::kForming : JobState::kTraining);
}

void Lifecycle::on(const job::StartRefused& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr) return;
  worker->state = WorkerProcess::kExited;
  fail({"failed", 3, "host", false,
        fmt::format("{} could not be started on {}: {}", e.member.worker, worker->place.host,
                    e.reason)},
       out);
}

void Lifecycle::on(const job::Joined& e, Effects& out) {
  if (WorkerProcess* worker = find_mutable(e.member)) {
    if (worker->state != WorkerProcess::kExited) worker->state = WorkerProcess::kJoined;
  }
  if (e.collective || stopping()) return;
  image_.collective = false;
  if (image_.phase == 0) open_phase(1, out);
}

void Lifecycle::on(const job::GenerationSettled& e, Effects& out) {
  if (stopping()) return;
  out.emplace_back(job::Note{"generation", fmt::format("generation {} is settled", e.generation)});
  if (image_.phase == 0) open_phase(1, out);
}

void Lifecycle::open_phase(std::uint64_t phase, Effects& out) {
  image_.phase = phase;
  drained_ = false;
  const wire::PhaseStart start = describe(phase);
  if (phase == 1) last_checkpoint_ = now_;
  if (start.what == "finish") {
    set_state(JobState::kFinishing);
  } else {
    set_state(start.what == "train" ? JobState::kTraining : JobState::kEvaluating);
  }
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::OpenPhase{start});
  if (start.what == "finish" && spec_.external) end_if_all_left(out);
}

void Lifecycle::on(const job::PhaseDrained& e, Effects& out) {
  if (e.phase != image_.phase) return;
  drained_ = true;
  advance_if_complete(out);
}

void Lifecycle::on(const job::MemberDone& e, Effects& out) {
  std::uint64_t& done = done_with_[e.member.worker];
  done = std::max(done, e.phase);
  advance_if_complete(out);
}

void Lifecycle::advance_if_complete(Effects& out) {
  if (!drained_ || stopping() || image_.phase >= last_phase()) return;
  if (image_.collective && state() == JobState::kTraining) {
    // Everybody must be out of the last collective before the next phase.
    for (const WorkerProcess& w : image_.workers) {
      const auto done = done_with_.find(w.place.worker);
      if (w.running() && (done == done_with_.end() || done->second < image_.phase)) return;
    }
  }
  open_phase(image_.phase + 1, out);
}

void Lifecycle::order_checkpoint(Effects& out) {
  last_checkpoint_ = now_;
  ++image_.checkpoints_ordered;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::OrderCheckpoint{image_.checkpoints_ordered});
}

void Lifecycle::on(const job::CheckpointStored& e, Effects& out) {
  if (e.error.empty()) {
    image_.checkpoints_stored = std::max(image_.checkpoints_stored, e.number);
    out.emplace_back(job::SaveImage{});
  } else {
    image_.checkpoints_ordered = image_.checkpoints_stored;
    out.emplace_back(job::Note{"checkpoint-failed", e.error});
  }
  if (state() == JobState::kFinishing && !e.error.empty()) {
    fail({"failed", 1, "checkpoint", image_.checkpoints_stored > 0,
          fmt::format("all records are trained, but the model could not be kept: {}", e.error)},
         out);
    return end_if_all_left(out);
  }
  if (state() == JobState::kStopping && image_.outcome && image_.outcome->state == "stopped") {
    image_.outcome->resumable = image_.checkpoints_stored > 0;
    out.emplace_back(job::LeaveAll{{image_.outcome->first_cause, kExitResumable}});
  }
}

void Lifecycle::on(const job::SaidBye& e, Effects&) {
  if (WorkerProcess* worker = find_mutable(e.member)) worker->said_bye = true;
}

void Lifecycle::on(const job::Exited& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || worker->state == WorkerProcess::kExited) return;
  worker->state = WorkerProcess::kExited;
  worker->code = e.exit.code;
  worker->signal = e.exit.signal;
  worker->error = e.exit.error;
  worker->last_lines = e.exit.last_lines;
  worker->exited_at_s = seconds();
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{
      "worker-exited",
      fmt::format("{} on {} {}", e.member.worker, worker->place.host, describe_exit(*worker))});
  if (!stopping()) {
    const bool too_early =
        spec_.protocol == Protocol::kAntdt && image_.collective && state() != JobState::kFinishing;
    if (worker->code == kExitResumable && worker->signal == 0) {
      image_.outcome = Outcome{"stopped", 75, "stopped", image_.checkpoints_stored > 0,
                               fmt::format("{} asked to stop (exit code 75)", e.member.worker)};
      set_state(JobState::kStopping);
      stop_all(spec_.stop_grace, out);
    } else if (!is_good(*worker) || too_early) {
      fail({"failed", 1, "program", image_.checkpoints_stored > 0, ""}, out);
    }
  }
  end_if_all_left(out);
}

void Lifecycle::on(const job::StopAsked& e, Effects& out) {
  const bool again = stopping();
  if (!again) {
    image_.outcome = Outcome{"stopped", 75, "stopped", image_.checkpoints_stored > 0, e.reason};
    out.emplace_back(job::Note{"stopping", e.reason});
  }
  const bool can_checkpoint = state() == JobState::kTraining && image_.collective &&
                              spec_.protocol == Protocol::kAntdt && image_.phase > 0;
  set_state(JobState::kStopping);
  if (!again && can_checkpoint && e.grace > Duration::zero()) {
    order_checkpoint(out);  // answered by CheckpointStored, then everybody leaves
    stop_deadline_ = now_ + e.grace;
    return;
  }
  stop_all(e.grace, out);
  end_if_all_left(out);
}

void Lifecycle::on(const job::Failed& e, Effects& out) {
  fail({"failed", e.code, e.exit_class, image_.checkpoints_stored > 0, e.reason}, out);
  end_if_all_left(out);
}

void Lifecycle::fail(Outcome outcome, Effects& out) {
  if (stopping()) return;  // what follows from the first cause is not one
  image_.outcome = std::move(outcome);
  set_state(JobState::kStopping);
  stop_all(spec_.stop_grace, out);
}

void Lifecycle::stop_all(Duration grace, Effects& out) {
  stop_deadline_ = now_ + grace + kKillDeadline;
  for (WorkerProcess& w : image_.workers) {
    if (!w.running()) continue;
    w.asked_to_stop = true;
    w.killed_from_s = seconds() + to_seconds(grace);
    out.emplace_back(job::StopWorker{w.member(), w.place.host, grace});
  }
  out.emplace_back(job::SaveImage{});
}

void Lifecycle::on(const job::Tick&, Effects& out) {
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
  const bool due = spec_.checkpoint_every > Duration::zero() && image_.collective &&
                   spec_.protocol == Protocol::kAntdt && state() == JobState::kTraining &&
                   image_.checkpoints_ordered == image_.checkpoints_stored &&
                   now_ - last_checkpoint_ >= spec_.checkpoint_every;
  if (due) order_checkpoint(out);
}

void Lifecycle::end_if_all_left(Effects& out) {
  if (std::ranges::any_of(image_.workers, &WorkerProcess::running)) return;
  Outcome outcome;
  if (image_.outcome) {
    outcome = image_.outcome->first_cause.empty() ? judge_exits() : *image_.outcome;
  } else if (spec_.protocol == Protocol::kAntdt && state() != JobState::kFinishing) {
    outcome = {"failed", 1, "program", image_.checkpoints_stored > 0,
               "every worker ended before the records of the job were all trained"};
  } else {
    outcome = {"done", 0, "done", false, ""};
  }
  image_.outcome = outcome;
  set_state(outcome.state == "done"      ? JobState::kDone
            : outcome.state == "stopped" ? JobState::kStopped
                                         : JobState::kFailed);
  ended_ = true;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::End{outcome});
}

Outcome Lifecycle::judge_exits() const {
  // By class first: who only lost its peers is a victim. Among the others the
  // first by time; the times are those of this daemon's clock.
  const auto rank_as_cause = [](const WorkerProcess& w) {
    if (ends_as_asked(w)) return 3;
    if (w.code == kExitCollectiveBroken) return 2;
    return is_good(w) ? 1 : 0;
  };
  const WorkerProcess* first = nullptr;
  for (const WorkerProcess& w : image_.workers) {
    if (first == nullptr || std::pair(rank_as_cause(w), w.exited_at_s) <
                                std::pair(rank_as_cause(*first), first->exited_at_s)) {
      first = &w;
    }
  }
  Outcome outcome{"failed", 1, "program", image_.checkpoints_stored > 0, ""};
  if (!first->error.empty() || first->code == kExitConfiguration) {
    outcome.exit_class = "configuration";
    outcome.code = 2;
  } else if (first->signal != 0) {
    outcome.exit_class = "signal";
  } else if (first->code == kExitCollectiveBroken) {
    outcome.exit_class = "collective";
  }
  outcome.first_cause =
      fmt::format("{} on {} {}", first->place.worker, first->place.host,
                  is_good(*first) ? "ended before the job was over" : describe_exit(*first));
  if (!first->last_lines.empty()) {
    outcome.first_cause +=
        fmt::format("; the last lines of its error output:\n{}", first->last_lines);
  }
  return outcome;
}

}  // namespace antdt::ctl
