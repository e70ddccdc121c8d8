// Processes: what their ends mean, and where they are started again.
#include <algorithm>
#include <cmath>
#include <csignal>

#include "ctl/lifecycle.h"

namespace antdt::ctl {
namespace {

// A process that fails this soon after its start, twice or more in a row without
// having been a member in between, is started again with a growing delay.
constexpr double kQuickSeconds = 60;
constexpr double kLongestDelaySeconds = 30;
// A peer's end is noticed within this time.
constexpr double kVictimSeconds = 5;
// A program that cannot tell of steps is taken to work once it ran this long.
constexpr double kRanForSeconds = 10;

std::string with_last_lines(std::string text, const std::string& last_lines) {
  if (last_lines.empty()) return text;
  return fmt::format("{}; the last lines of its error output:\n{}", text, last_lines);
}

double delay_after(std::uint32_t quick_failures) {
  if (quick_failures < 2) return 0;
  return std::min(kLongestDelaySeconds, std::exp2(std::min(quick_failures, 10U) - 3.0));
}

// How the processes of a gang end when they lose a peer: a program's own error,
// or a library that gives up.
bool may_be_victim(FailureClass cls, const WorkerProcess& worker) {
  return cls == FailureClass::kProgram ||
         (cls == FailureClass::kSignal && worker.signal == SIGABRT);
}

}  // namespace

void Lifecycle::expect(Effects& out) {
  if (spec_.protocol != Protocol::kAntdt) return;
  job::ExpectMembers members;
  for (const WorkerProcess& w : image_.workers) {
    if (w.running()) members.workers.push_back(w);
  }
  out.emplace_back(std::move(members));
}

std::string Lifecycle::host_name(const std::string& host) const {
  const HostState* known = hosts_.find(host);
  return known == nullptr || known->name.empty() ? host : known->name;
}

// ----------------------------------------------------------------------- hosts

void Lifecycle::on(const job::HostUp& e, Effects& out) {
  hosts_.up(e.host);
  out.emplace_back(job::SaveImage{});
  if (!stopping()) start_waiting(out);
}

void Lifecycle::on(const job::HostLost& e, Effects& out) {
  if (image_.workers.empty() && !spec_.external) {
    return fail({"failed", 3, "host", false,
                 fmt::format("the agent {} cannot be reached: {}", e.host, e.reason)},
                out);
  }
  hosts_.down(e.host);
  out.emplace_back(job::Note{"host-lost", fmt::format("{}: {}", host_name(e.host), e.reason)});
  for (WorkerProcess& w : image_.workers) {
    if (!w.running() || w.place.host != e.host) continue;
    w.state = WorkerProcess::kExited;
    w.exited_at_s = seconds();
    w.error = fmt::format("its host {} is lost ({})", host_name(e.host), e.reason);
    ended(w, FailureClass::kHost, out);
  }
  out.emplace_back(job::SaveImage{});
  end_if_all_left(out);
}

// ------------------------------------------------------------------------ ends

bool Lifecycle::made_progress() const {
  if (image_.made_progress) return true;
  if (spec_.protocol == Protocol::kAntdt) return false;
  return std::ranges::any_of(image_.workers, [&](const WorkerProcess& w) {
    return w.attempt > Attempt{1} || w.exited_at_s - w.started_at_s > kRanForSeconds;
  });
}

void Lifecycle::on(const job::Exited& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || !worker->running()) return;
  worker->state = WorkerProcess::kExited;
  worker->code = e.exit.code;
  worker->signal = e.exit.signal;
  if (!worker->hung) worker->error = e.exit.error;
  worker->last_lines = e.exit.last_lines;
  worker->oom = e.exit.oom;
  worker->exited_at_s = seconds();
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{
      "worker-exited", fmt::format("{} on {} {}", e.member.worker, host_name(worker->place.host),
                                   describe_exit(*worker))});
  FailureClass cls = classify(*worker, made_progress());
  const bool too_early = spec_.protocol == Protocol::kAntdt && image_.collective &&
                         state() != JobState::kFinishing && !stopping();
  if (cls == FailureClass::kNone && too_early) cls = FailureClass::kProgram;
  ended(*worker, cls, out);
  end_if_all_left(out);
}

void Lifecycle::ended(WorkerProcess& worker, FailureClass cls, Effects& out) {
  const bool in_order = cls == FailureClass::kAsked || cls == FailureClass::kNone;
  out.emplace_back(job::WorkerGone{
      worker.member(), fmt::format("{} {}", worker.place.worker, describe_end(worker, cls)),
      in_order, records_are_suspect(worker, cls)});
  std::erase(group_, worker.member());
  if (stopping()) {
    if (in_order || cls == FailureClass::kResumable) return;
    record_failure(worker, cls);
    // The job ends because of a victim that was heard of before its cause.
    if (image_.outcome->exit_class == to_string(FailureClass::kCollective)) {
      image_.outcome = outcome_of(image_.incident);
    }
    return;
  }
  switch (cls) {
    case FailureClass::kNone:
      return;
    case FailureClass::kAsked:
      return left_as_asked(worker, out);
    case FailureClass::kResumable:
      image_.outcome = Outcome{"stopped", 75, "stopped", image_.checkpoints_stored > 0,
                               fmt::format("{} asked to stop (exit code 75)", worker.place.worker)};
      set_state(JobState::kStopping);
      return stop_all(spec_.stop_grace, out);
    default:
      return replace(worker, cls, out);
  }
}

void Lifecycle::record_failure(const WorkerProcess& worker, FailureClass cls) {
  std::string cause = fmt::format("{} on {} {}", worker.place.worker, host_name(worker.place.host),
                                  cls == FailureClass::kProgram && worker.code == 0
                                      ? "ended before the job was over"
                                      : describe_end(worker, cls));
  image_.failures.push_back({seconds(), worker.place.worker, worker.attempt,
                             host_name(worker.place.host), static_cast<std::uint8_t>(cls),
                             with_last_lines(std::move(cause), worker.last_lines), image_.incident,
                             std::nullopt});
}

// Which failure of the present incident is its first cause is found when it is over: of one that
// goes on and on its first failures stay, and its newest.
std::vector<FailureRecord> Lifecycle::take_old_failures() {
  std::vector<FailureRecord>& all = image_.failures;
  std::vector<FailureRecord> taken;
  while (all.size() > kMostFailures) {
    const bool is_over = all.front().incident < image_.incident;
    if (!is_over && all.size() <= kMostOfAnIncident) break;
    const auto old = all.begin() + static_cast<std::ptrdiff_t>(is_over ? 0 : kMostFailures);
    taken.push_back(std::move(*old));
    all.erase(old);
  }
  return taken;
}

// Hosts lost together are one event.
bool Lifecycle::takes_budget(FailureClass cls) {
  const bool counted = cls == FailureClass::kHost &&
                       std::ranges::any_of(image_.failures, [&](const FailureRecord& f) {
                         return f.incident == image_.incident &&
                                f.cls == static_cast<std::uint8_t>(FailureClass::kHost);
                       });
  return counted || budgets_.take(cls, image_.trained_s);
}

// Of processes that do not say that they only lost a peer: those that end after
// the first are its victims, unless they were killed, which makes those before
// them the victims.
FailureClass Lifecycle::class_in_gang(FailureClass cls, const WorkerProcess& worker) {
  if (may_be_victim(cls, worker)) return FailureClass::kCollective;
  if (cls != FailureClass::kSignal && cls != FailureClass::kOom) return cls;
  for (FailureRecord& f : image_.failures) {
    const bool before = f.incident == image_.incident &&
                        f.cls == static_cast<std::uint8_t>(FailureClass::kProgram) &&
                        seconds() - f.time_s < kVictimSeconds;
    if (before) f.cls = static_cast<std::uint8_t>(FailureClass::kCollective);
  }
  return cls;
}

void Lifecycle::replace(WorkerProcess& worker, FailureClass cls, Effects& out) {
  const bool others_finish = state() == JobState::kFinishing && !group_.empty() && !is_gang();
  if (image_.model_kept || (others_finish && !worker.is_server())) {
    record_failure(worker, cls);  // the others keep the model
    worker.state = WorkerProcess::kRemoved;
    return;
  }
  if (worker.apart) return added_failed(worker, cls, out);
  if (move_failed(worker, cls, out)) return;
  const bool in_gang_stop = image_.gang_stops;
  if (in_gang_stop) cls = class_in_gang(cls, worker);
  const bool never = cls == FailureClass::kConfiguration || cls == FailureClass::kNeverAgain ||
                     spec_.restart == Restart::kNever || spec_.external;
  const bool granted = never || in_gang_stop || takes_budget(cls);
  record_failure(worker, cls);
  if (cls != FailureClass::kCollective && cls != FailureClass::kHost) {
    hosts_.failed_on(worker.place.host, seconds());
  }
  if (never || !granted) {
    if (!granted) {
      image_.over_budget = fmt::format(
          "\nThe job bears {} failures of class \"{}\" ([failure] budgets), and this was one more.",
          budgets_.limit(cls), to_string(cls));
    }
    return fail(outcome_of(image_.incident), out);
  }
  if (is_gang()) {
    worker.state = WorkerProcess::kWaiting;
    stop_gang(worker, out);
    return;
  }
  if (worker.stays_away) {  // it was to leave, and has
    worker.state = WorkerProcess::kRemoved;
    return expect(out);
  }
  wait_for_place(worker);
  start_waiting(out);
  expect(out);
}

void Lifecycle::wait_for_place(WorkerProcess& worker) {
  const bool quick = worker.exited_at_s - worker.started_at_s < kQuickSeconds;
  worker.quick_failures = quick ? worker.quick_failures + 1 : 0;
  WorkerProcess next;
  next.place = worker.place;
  next.attempt = worker.attempt.next();
  next.state = WorkerProcess::kWaiting;
  next.quick_failures = worker.quick_failures;
  next.apart = worker.apart;
  next.waits_until_s = seconds() + delay_after(worker.quick_failures);
  worker = std::move(next);
}

void Lifecycle::start_waiting(Effects& out) {
  if (image_.gang_stops) return restart_gang_if_all_left(out);
  bool any = false;
  for (WorkerProcess& w : image_.workers) {
    if (w.state != WorkerProcess::kWaiting || seconds() < w.waits_until_s) continue;
    const HostState* host = hosts_.choose(w, image_.workers, seconds(), {host_of_second(w)});
    if (host == nullptr && !w.moves_in) host = hosts_.choose(w, image_.workers, seconds());
    if (host == nullptr) continue;  // until one has room; `antdt status` says so
    w.place.host = host->host;
    w.place.host_order = host->order;
    w.state = WorkerProcess::kPlanned;
    w.started_at_s = seconds();
    out.emplace_back(job::StartWorker{w.member(), w.place.host});
    any = true;
  }
  if (!any) return;
  out.emplace_back(job::SaveImage{});
  expect(out);
}

void Lifecycle::on(const job::StartRefused& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || worker->state != WorkerProcess::kPlanned) return;
  worker->state = WorkerProcess::kExited;
  worker->exited_at_s = seconds();
  const std::string reason = fmt::format("{} could not be started on {}: {}", e.member.worker,
                                         host_name(worker->place.host), e.reason);
  // What was replaced on a host that was away may still take its room there.
  const bool at_first = worker->attempt == Attempt{1} && state() == JobState::kStarting;
  if (at_first || spec_.restart == Restart::kNever) {
    fail({"failed", 3, "host", image_.checkpoints_stored > 0, reason}, out);
    return end_if_all_left(out);
  }
  out.emplace_back(job::Note{"start-refused", reason});
  hosts_.failed_on(worker->place.host, seconds());
  out.emplace_back(job::WorkerGone{worker->member(), reason, true, false});
  worker->quick_failures += 2;  // not at once again
  wait_for_place(*worker);
  out.emplace_back(job::SaveImage{});
  expect(out);
}

void Lifecycle::on(const job::Vanished& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || !worker->running()) return;
  worker->state = WorkerProcess::kExited;
  worker->exited_at_s = seconds();
  worker->error =
      fmt::format("its agent on {} does not know of it any more (did the host restart?)",
                  host_name(worker->place.host));
  out.emplace_back(job::SaveImage{});
  ended(*worker, FailureClass::kHost, out);
  end_if_all_left(out);
}

// What ran is gone or is given up; everybody begins a new attempt.
void Lifecycle::on(const job::Resumed&, Effects& out) {
  image_.outcome.reset();
  image_.over_budget.clear();
  image_.gang_stops = image_.checkpoint_pending = image_.model_kept = false;
  budgets_.restore({});  // whoever resumes it lets it fail as often as at first
  settled_ = false;
  group_.clear();
  change_servers_at_resume(out);
  bool someone = false;
  for (WorkerProcess& w : image_.workers) {
    if (w.state == WorkerProcess::kRemoved) continue;
    if (w.running()) {
      out.emplace_back(job::WorkerGone{w.member(), "the run is resumed", false, false});
    }
    if (w.stays_away) {  // it was to leave when the run was stopped
      w.state = WorkerProcess::kRemoved;
      continue;
    }
    wait_for_place(w);
    w.quick_failures = 0;
    w.waits_until_s = 0;
    someone = someone || !w.is_server();
  }
  // Who was to stay had left before them.
  if (!someone && !image_.workers.empty()) wait_for_place(image_.workers.front());
  set_state(JobState::kForming);
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{"resumed", "the run goes on from its last checkpoint"});
}

void Lifecycle::on(const job::Hung& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || !worker->running() || worker->hung || stopping()) return;
  worker->hung = true;
  worker->error = e.why;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{"hang", fmt::format("{} on {} is ended: {}", e.member.worker,
                                                 host_name(worker->place.host), e.why)});
  stop_worker(*worker, Duration::zero(), out);
}

// ------------------------------------------------------------------------ gang

void Lifecycle::stop_gang(const WorkerProcess& cause, Effects& out) {
  if (!image_.gang_stops) {
    image_.gang_stops = true;
    const bool quick = cause.exited_at_s - cause.started_at_s < kQuickSeconds;
    image_.gang_quick_failures = quick ? image_.gang_quick_failures + 1 : 0;
    image_.gang_waits_until_s = seconds() + delay_after(image_.gang_quick_failures);
    for (WorkerProcess& w : image_.workers) {
      if (w.running()) stop_worker(w, spec_.stop_grace, out);
    }
  }
  out.emplace_back(job::SaveImage{});
  restart_gang_if_all_left(out);
}

void Lifecycle::restart_gang_if_all_left(Effects& out) {
  if (std::ranges::any_of(image_.workers, &WorkerProcess::running)) return;
  if (seconds() < image_.gang_waits_until_s) return;
  std::vector<WorkerProcess> next = image_.workers;
  for (WorkerProcess& w : next) {
    if (w.attempt > Attempt{} && w.state == WorkerProcess::kRemoved) continue;
    w.state = WorkerProcess::kExited;
  }
  job::PrepareGang gang;
  for (WorkerProcess& w : next) {
    if (w.state == WorkerProcess::kRemoved) continue;
    const HostState* host = hosts_.choose(w, next, seconds());
    if (host == nullptr) return;  // all or none: until there is room
    w.place.host = host->host;
    w.place.host_order = host->order;
    wait_for_place(w);
    w.state = WorkerProcess::kPlanned;
    w.started_at_s = seconds();
  }
  image_.workers = std::move(next);
  image_.gang_stops = false;
  std::ranges::sort(image_.workers, {}, [](const WorkerProcess& w) {
    return std::pair(w.place.worker.role, w.place.worker.index);
  });
  for (const WorkerProcess& w : image_.workers) {
    if (w.running()) gang.workers.push_back(w.place);
  }
  for (FailureRecord& f : image_.failures) {
    if (f.incident == image_.incident && !f.recovered_in_s) f.recovered_in_s = seconds() - f.time_s;
  }
  ++image_.incident;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{
      "gang", fmt::format("all {} processes are started again together", gang.workers.size())});
  if (spec_.protocol == Protocol::kTorchrun) {
    out.emplace_back(std::move(gang));
  } else {
    on(job::GangReady{}, out);
  }
}

void Lifecycle::on(const job::GangReady&, Effects& out) {
  for (const WorkerProcess& w : image_.workers) {
    if (w.state != WorkerProcess::kPlanned) continue;
    out.emplace_back(job::StartWorker{w.member(), w.place.host});
  }
  expect(out);
}

// --------------------------------------------------------------------- the cause

Outcome Lifecycle::outcome_of(std::uint64_t incident) const {
  Outcome outcome{"failed", 1, "program", image_.checkpoints_stored > 0,
                  "the workers ended, and none of them said why"};
  const std::size_t first = first_cause(image_.failures, incident);
  if (first == image_.failures.size()) return outcome;
  const FailureRecord& cause = image_.failures[first];
  const auto cls = static_cast<FailureClass>(cause.cls);
  outcome.exit_class = to_string(cls);
  outcome.first_cause = cause.cause;
  if (cls == FailureClass::kConfiguration) {
    // An error of the program's own, before it did anything, is not the job file's.
    const WorkerProcess* w = find(cause.worker);
    const bool own = w != nullptr && w->attempt == cause.attempt && w->error.empty() &&
                     w->code != kExitConfiguration;
    if (own) outcome.exit_class = to_string(FailureClass::kProgram);
    outcome.code = own ? 1 : 2;
    outcome.resumable = false;
  } else if (cls == FailureClass::kHost) {
    outcome.code = 3;
  } else if (cls == FailureClass::kNeverAgain) {
    outcome.resumable = false;
  }
  outcome.first_cause += image_.over_budget;
  return outcome;
}

}  // namespace antdt::ctl
