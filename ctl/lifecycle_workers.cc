// Processes: what their ends mean, and where they are started again.
#include <algorithm>
#include <cmath>

#include "ctl/lifecycle.h"

namespace antdt::ctl {
namespace {

// A process that fails this soon after its start, twice or more in a row without
// having been a member in between, is started again with a growing delay.
constexpr double kQuickSeconds = 60;
constexpr double kLongestDelaySeconds = 30;
// A program that cannot tell of steps is taken to work once it ran this long.
constexpr double kRanForSeconds = 10;

std::string with_last_lines(std::string text, const std::string& last_lines) {
  if (last_lines.empty()) return text;
  return fmt::format("{}; the last lines of its error output:\n{}", text, last_lines);
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
  out.emplace_back(job::Note{"worker-exited",
                             fmt::format("{} on {} {}", e.member.worker,
                                         host_name(worker->place.host), describe_exit(*worker))});
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
      worker.member(), fmt::format("{} {}", worker.place.worker, describe_exit(worker)), in_order,
      records_are_suspect(worker, cls)});
  std::erase(group_, worker.member());
  if (stopping()) {
    if (!in_order && cls != FailureClass::kResumable) record_failure(worker, cls);
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
  std::string cause = fmt::format("{} on {} {}", worker.place.worker,
                                  host_name(worker.place.host),
                                  cls == FailureClass::kProgram && worker.code == 0
                                      ? "ended before the job was over"
                                  : cls == FailureClass::kHost ? worker.error
                                                               : describe_exit(worker));
  image_.failures.push_back({seconds(), worker.place.worker, worker.attempt,
                             host_name(worker.place.host), static_cast<std::uint8_t>(cls),
                             with_last_lines(std::move(cause), worker.last_lines),
                             image_.incident, std::nullopt});
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

void Lifecycle::replace(WorkerProcess& worker, FailureClass cls, Effects& out) {
  const bool in_gang_stop = image_.gang_stops;
  const bool never = cls == FailureClass::kConfiguration || cls == FailureClass::kNeverAgain ||
                     spec_.restart == Restart::kNever || spec_.external;
  const bool granted = never || in_gang_stop || takes_budget(cls);
  record_failure(worker, cls);
  if (cls != FailureClass::kCollective && cls != FailureClass::kHost) {
    hosts_.failed_on(worker.place.host, seconds());
  }
  if (never || !granted) {
    Outcome outcome = outcome_of(image_.incident);
    if (!granted) {
      outcome.first_cause += fmt::format(
          "\nThe job bears {} failures of class \"{}\" ([failure] budgets), and this was one more.",
          budgets_.limit(cls), to_string(cls));
    }
    return fail(std::move(outcome), out);
  }
  if (is_gang()) {
    worker.state = WorkerProcess::kWaiting;
    stop_gang(out);
    return;
  }
  worker.stays_away = false;
  wait_for_place(worker);
  start_waiting(out);
  expect(out);
}

void Lifecycle::wait_for_place(WorkerProcess& worker) {
  const bool quick = worker.exited_at_s - worker.started_at_s < kQuickSeconds;
  worker.quick_failures = quick ? worker.quick_failures + 1 : 0;
  const double delay = worker.quick_failures < 2
                           ? 0
                           : std::min(kLongestDelaySeconds,
                                      std::exp2(std::min(worker.quick_failures, 10U) - 3.0));
  WorkerProcess next;
  next.place = worker.place;
  next.attempt = worker.attempt.next();
  next.state = WorkerProcess::kWaiting;
  next.quick_failures = worker.quick_failures;
  next.waits_until_s = seconds() + delay;
  worker = std::move(next);
}

void Lifecycle::start_waiting(Effects& out) {
  if (image_.gang_stops) return restart_gang_if_all_left(out);
  bool any = false;
  for (WorkerProcess& w : image_.workers) {
    if (w.state != WorkerProcess::kWaiting || seconds() < w.waits_until_s) continue;
    const HostState* host = hosts_.choose(w, image_.workers, seconds());
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
  const std::string reason =
      fmt::format("{} could not be started on {}: {}", e.member.worker,
                  host_name(worker->place.host), e.reason);
  if (!made_progress() || spec_.restart == Restart::kNever) {
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
  worker->error = fmt::format("its agent on {} does not know of it any more (did the host restart?)",
                              host_name(worker->place.host));
  out.emplace_back(job::SaveImage{});
  ended(*worker, FailureClass::kHost, out);
  end_if_all_left(out);
}

// What ran is gone or is given up; everybody begins a new attempt.
void Lifecycle::on(const job::Resumed&, Effects& out) {
  image_.outcome.reset();
  image_.gang_stops = image_.checkpoint_pending = false;
  settled_ = false;
  group_.clear();
  for (WorkerProcess& w : image_.workers) {
    if (w.state == WorkerProcess::kRemoved) continue;
    if (w.running()) {
      out.emplace_back(job::WorkerGone{w.member(), "the run is resumed", false, false});
    }
    wait_for_place(w);
    w.quick_failures = 0;
    w.waits_until_s = 0;
  }
  set_state(JobState::kForming);
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{"resumed", "the run goes on from its last checkpoint"});
}

void Lifecycle::on(const job::Hung& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr || !worker->running() || worker->hung || stopping()) return;
  worker->hung = true;
  worker->error = e.why;
  worker->asked_to_stop = true;
  worker->killed_from_s = seconds();
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{"hang", fmt::format("{} on {} is ended: {}", e.member.worker,
                                                 host_name(worker->place.host), e.why)});
  out.emplace_back(job::StopWorker{worker->member(), worker->place.host, Duration::zero()});
}

// ------------------------------------------------------------------------ gang

void Lifecycle::stop_gang(Effects& out) {
  if (!image_.gang_stops) {
    image_.gang_stops = true;
    for (WorkerProcess& w : image_.workers) {
      if (!w.running()) continue;
      w.asked_to_stop = true;
      w.killed_from_s = seconds() + to_seconds(spec_.stop_grace);
      out.emplace_back(job::StopWorker{w.member(), w.place.host, spec_.stop_grace});
    }
  }
  out.emplace_back(job::SaveImage{});
  restart_gang_if_all_left(out);
}

void Lifecycle::restart_gang_if_all_left(Effects& out) {
  if (std::ranges::any_of(image_.workers, &WorkerProcess::running)) return;
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
  out.emplace_back(job::Note{"gang", fmt::format("all {} processes are started again together",
                                                 gang.workers.size())});
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

// ------------------------------------------------------------ operators' wishes

Status Lifecycle::check(const job::EvictAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  const auto id = parse_worker_id(e.target);
  const WorkerProcess* worker = id ? find(*id) : nullptr;
  const HostState* host = worker != nullptr ? nullptr : hosts_.named(e.target);
  if (worker == nullptr && host == nullptr) {
    return antdt::fail(ErrorKind::kUsage,
                       "'{}' is neither a worker nor a host of this job; antdt status lists both",
                       e.target);
  }
  if (worker != nullptr && !worker->running()) {
    return antdt::fail(ErrorKind::kRefused, "{} is not running, it is {}", e.target,
                       state_name(worker->state));
  }
  const auto stays = [&](const WorkerProcess& w) {
    return w.running() && !w.leaving && &w != worker &&
           (host == nullptr || w.place.host != host->host);
  };
  const std::string& from = worker != nullptr ? worker->place.host : host->host;
  const bool elsewhere = std::ranges::any_of(hosts_.all(), [&](const HostState& h) {
    return h.up && !h.closed && h.host != from && h.room > 0;
  });
  if (!elsewhere && std::ranges::none_of(image_.workers, stays)) {
    return antdt::fail(ErrorKind::kRefused,
                       "nobody would be left to train: no other host takes workers; use antdt stop "
                       "to end the job");
  }
  return {};
}

void Lifecycle::on(const job::EvictAsked& e, Effects& out) {
  if (!check(e)) return;
  const HostState* host = hosts_.named(e.target);
  const auto id = parse_worker_id(e.target);
  if (id && find(*id) != nullptr) host = nullptr;
  if (host != nullptr) hosts_.close(std::string(host->host));
  for (WorkerProcess& w : image_.workers) {
    const bool meant = host != nullptr ? w.place.host == host->host : w.place.worker == *id;
    if (meant && w.running()) ask_to_leave(w, e.reason, e.deadline, out);
  }
  out.emplace_back(job::Note{"evict", fmt::format("{} is asked to leave: {}", e.target, e.reason)});
  out.emplace_back(job::SaveImage{});
}

void Lifecycle::ask_to_leave(WorkerProcess& worker, const std::string& reason, Duration deadline,
                             Effects& out) {
  if (worker.leaving) return;
  worker.leaving = true;
  leave_deadlines_[worker.member()] = now_ + deadline;
  const bool hears = worker.state == WorkerProcess::kJoined;
  if (hears && spec_.protocol == Protocol::kAntdt) {
    out.emplace_back(job::LeaveWorker{worker.member(), {reason, kExitResumable}});
    return;
  }
  worker.asked_to_stop = true;
  worker.killed_from_s = seconds() + to_seconds(deadline);
  out.emplace_back(job::StopWorker{worker.member(), worker.place.host, deadline});
}

void Lifecycle::left_as_asked(WorkerProcess& worker, Effects& out) {
  if (image_.gang_stops) {
    worker.state = WorkerProcess::kWaiting;
    return restart_gang_if_all_left(out);
  }
  const HostState* elsewhere =
      worker.stays_away ? nullptr
                        : hosts_.choose(worker, image_.workers, seconds(), worker.place.host);
  if (elsewhere == nullptr) {
    worker.state = WorkerProcess::kRemoved;
    out.emplace_back(job::Note{
        "left", fmt::format("{} has left; its share is spread over the others",
                            worker.place.worker)});
  } else {
    worker.place.host = elsewhere->host;
    worker.place.host_order = elsewhere->order;
    wait_for_place(worker);
    worker.quick_failures = 0;
    worker.waits_until_s = 0;
    start_waiting(out);
  }
  out.emplace_back(job::SaveImage{});
  expect(out);
}

Status Lifecycle::check(const job::ResizeAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  if (spec_.protocol != Protocol::kAntdt) {
    return antdt::fail(ErrorKind::kUsage,
                     "only programs that speak the antdt protocol can be resized while they run");
  }
  if (e.count == 0) return antdt::fail(ErrorKind::kUsage, "a job has at least one worker");
  const auto present = static_cast<std::uint32_t>(std::ranges::count_if(
      image_.workers, [](const WorkerProcess& w) {
        return w.state != WorkerProcess::kRemoved && !w.stays_away;
      }));
  const std::uint32_t room = hosts_.room_left(image_.workers);
  if (e.count > present && e.count - present > room) {
    return antdt::fail(ErrorKind::kRefused,
                       "{} workers are wanted, and the hosts have room for {} more than the {} "
                       "there are; lower [roles.worker] resources or add hosts",
                       e.count, room, present);
  }
  return {};
}

void Lifecycle::on(const job::ResizeAsked& e, Effects& out) {
  if (!check(e)) return;
  std::vector<WorkerProcess*> present;
  for (WorkerProcess& w : image_.workers) {
    if (w.state != WorkerProcess::kRemoved && !w.stays_away) present.push_back(&w);
  }
  out.emplace_back(job::Note{
      "resize", fmt::format("from {} to {} workers: {}", present.size(), e.count, e.reason)});
  for (std::size_t i = present.size(); i > e.count; --i) {
    WorkerProcess& w = *present[i - 1];
    w.stays_away = true;
    if (w.running()) {
      ask_to_leave(w, e.reason, spec_.stop_grace, out);
    } else {
      w.state = WorkerProcess::kRemoved;
    }
  }
  for (std::size_t i = present.size(); i < e.count; ++i) {
    const auto gone = std::ranges::find_if(image_.workers, [](const WorkerProcess& w) {
      return w.state == WorkerProcess::kRemoved;
    });
    WorkerProcess next;
    if (gone != image_.workers.end()) {
      next.place = gone->place;
      next.attempt = gone->attempt.next();
    } else {
      next.place.worker = {'w', static_cast<std::uint32_t>(image_.workers.size())};
      next.attempt = Attempt{1};
    }
    next.state = WorkerProcess::kWaiting;
    if (gone != image_.workers.end()) {
      *gone = std::move(next);
    } else {
      image_.workers.push_back(std::move(next));
    }
  }
  out.emplace_back(job::SaveImage{});
  start_waiting(out);
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
  return outcome;
}

}  // namespace antdt::ctl
