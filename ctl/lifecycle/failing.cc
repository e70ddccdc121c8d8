// Processes that end: which class of failure it is, and what follows.
#include <algorithm>

#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
namespace {

constexpr const char* kFailsAtOnce =
    "\nIt is not started again: what fails before the job has made a step fails again.";

}  // namespace

void Failing::on(const HostLost& e) {
  if (life_.workers.empty() && !life_.spec.external) {
    return turn_.stopping.fail(
        {JobEnd::kFailed, 3, ExitClass::kHost, false,
         fmt::format("the agent {} cannot be reached: {}", e.host, e.reason)});
  }
  life_.hosts.down(e.host);
  out_.emplace_back(
      WriteNote{"host-lost", fmt::format("{}: {}", life_.host_name(e.host), e.reason)});
  for (WorkerProcess& w : life_.workers) {
    if (!w.running() || w.place.host != e.host) continue;
    w.lose(fmt::format("its host {} is lost ({})", life_.host_name(e.host), e.reason),
           life_.seconds());
    ended(w, FailureClass::kHost);
  }
  out_.emplace_back(PersistImage{});
  turn_.stopping.end_if_all_left();
}

bool Failing::made_progress() const {
  if (life_.incidents.made_progress()) return true;
  if (life_.spec.protocol == Protocol::kAntdt) return false;
  return std::ranges::any_of(life_.workers, [&](const WorkerProcess& w) {
    return w.attempt > Attempt{1} || w.exited_at_s - w.started_at_s > kRanForSeconds;
  });
}

void Failing::on(const WorkerExited& e) {
  WorkerProcess* worker = life_.find_mutable(e.member);
  if (worker == nullptr || !worker->running()) return;
  const bool joined = worker->state == WorkerProcess::kJoined;
  worker->exit(e.exit, life_.seconds());
  out_.emplace_back(PersistImage{});
  FailureClass cls = classify(*worker, made_progress(), life_.spec.protocol);
  out_.emplace_back(WriteNote{"worker-exited", fmt::format("{} on {} {}", e.member.worker,
                                                           life_.host_name(worker->place.host),
                                                           describe_end(*worker, cls))});
  const bool too_early = life_.spec.protocol == Protocol::kAntdt && life_.image.collective &&
                         life_.state() != JobState::kFinishing && !life_.stopping();
  if (cls == FailureClass::kNone && too_early) {
    // A program that ends well and never joined does not speak the protocol: to start it again
    // would not help.
    cls = joined || made_progress() ? FailureClass::kProgram : FailureClass::kConfiguration;
  }
  ended(*worker, cls);
  turn_.stopping.end_if_all_left();
}

void Failing::ended(WorkerProcess& worker, FailureClass cls) {
  const bool in_order = cls == FailureClass::kAsked || cls == FailureClass::kNone;
  out_.emplace_back(ReleaseWorker{
      worker.member(), fmt::format("{} {}", worker.place.worker, describe_end(worker, cls)),
      in_order, records_are_suspect(worker, cls)});
  life_.phases.leave(worker.member());
  if (life_.stopping()) {
    if (in_order || cls == FailureClass::kResumable) return;
    record_failure(worker, cls);
    // The job ends because of a victim whose end was heard of before that of its cause.
    if (life_.image.outcome->exit_class == ExitClass::kCollective) {
      life_.image.outcome = outcome_of_failures();
    }
    return;
  }
  switch (cls) {
    case FailureClass::kNone:
      return;
    case FailureClass::kAsked:
      return turn_.wishes.left_as_asked(worker);
    case FailureClass::kResumable:
      life_.image.outcome =
          Outcome{JobEnd::kStopped, 75, ExitClass::kStopped, life_.checkpoints.any_stored(),
                  fmt::format("{} asked to stop (exit code 75)", worker.place.worker)};
      life_.set_state(JobState::kStopping);
      return turn_.stopping.stop_all(life_.spec.stop_grace);
    default:
      return replace(worker, cls);
  }
}

void Failing::record_failure(const WorkerProcess& worker, FailureClass cls) {
  life_.incidents.record(worker, life_.host_name(worker.place.host), cls, life_.seconds());
}

void Failing::replace(WorkerProcess& worker, FailureClass cls) {
  const bool others_finish =
      life_.state() == JobState::kFinishing && !life_.phases.group().empty() && !life_.is_gang();
  if (life_.image.model_kept || (others_finish && !worker.is_server())) {
    record_failure(worker, cls);  // the other members keep the model
    worker.remove();
    return;
  }
  if (worker.apart()) return turn_.servers.added_failed(worker, cls);
  if (turn_.moves.move_failed(worker, cls)) return;
  const bool in_gang_stop = life_.image.gang_stops;
  if (in_gang_stop) cls = life_.incidents.class_in_gang(cls, worker, life_.seconds());
  const bool never = cls == FailureClass::kConfiguration || cls == FailureClass::kNeverAgain ||
                     life_.spec.restart == Restart::kNever || life_.spec.external;
  // It is nobody's fault here that the job daemon was away.
  const bool orphaned = cls == FailureClass::kOrphaned;
  const bool granted = never || in_gang_stop || orphaned || life_.incidents.take_budget(cls);
  record_failure(worker, cls);
  if (cls != FailureClass::kCollective && cls != FailureClass::kHost && !orphaned) {
    life_.hosts.failed_on(worker.place.host, life_.seconds());
  }
  if (never || !granted) {
    if (!granted) {
      life_.incidents.exceed_budget(cls);
    }
    return turn_.stopping.fail(outcome_of_failures());
  }
  if (life_.is_gang()) {
    worker.wait_for_gang();
    turn_.starts.stop_gang(worker);
    return;
  }
  if (worker.stays_away()) {  // it was asked to leave, and has left
    worker.remove();
    return turn_.starts.expect();
  }
  worker.begin_again(life_.seconds());
  turn_.starts.start_waiting();
  turn_.starts.expect();
}

void Failing::on(const WorkerVanished& e) {
  WorkerProcess* worker = life_.find_mutable(e.member);
  if (worker == nullptr || !worker->running()) return;
  worker->lose(fmt::format("its agent on {} does not know of it any more (did the host restart?)",
                           life_.host_name(worker->place.host)),
               life_.seconds());
  out_.emplace_back(PersistImage{});
  ended(*worker, FailureClass::kHost);
  turn_.stopping.end_if_all_left();
}

void Failing::on(const WorkerHung& e) {
  WorkerProcess* worker = life_.find_mutable(e.member);
  if (worker == nullptr || !worker->running() || worker->hung() || life_.stopping()) return;
  worker->found_hung(e.why, life_.seconds());
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{"hang", fmt::format("{} on {} is ended: {}", e.member.worker,
                                                  life_.host_name(worker->place.host), e.why)});
  turn_.stopping.stop_worker(*worker, Duration::zero());
}

Outcome Failing::outcome_of_failures() const {
  Outcome outcome{JobEnd::kFailed, 1, ExitClass::kProgram, life_.checkpoints.any_stored(),
                  "the workers ended, and none of them said why"};
  const FailureRecord* const first = life_.incidents.first_cause();
  if (first == nullptr) return outcome;
  const FailureRecord& cause = *first;
  const auto cls = static_cast<FailureClass>(cause.cls);
  outcome.exit_class = exit_class_of(cls);
  outcome.first_cause = cause.cause;
  if (cls == FailureClass::kConfiguration) {
    // If the program failed before it did anything, the failure is not the job file's.
    const WorkerProcess* w = life_.find(cause.worker);
    const bool says_so = w != nullptr && life_.spec.protocol == Protocol::kAntdt &&
                         (w->code == kExitConfiguration || w->code == 0);
    const bool own = w != nullptr && w->attempt == cause.attempt && w->error.empty() && !says_so;
    if (own) {
      outcome.exit_class = ExitClass::kProgram;
      if (life_.spec.restart != Restart::kNever) outcome.first_cause += kFailsAtOnce;
    }
    outcome.code = own ? 1 : 2;
    outcome.resumable = false;
  } else if (cls == FailureClass::kHost || cls == FailureClass::kOrphaned) {
    outcome.code = 3;
  } else if (cls == FailureClass::kNeverAgain) {
    outcome.resumable = false;
  }
  outcome.first_cause += life_.incidents.over_budget();
  return outcome;
}

}  // namespace antdt::ctl::lifecycle
