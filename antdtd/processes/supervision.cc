#include "antdtd/processes/supervision.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/check.h"

namespace antdt::antdtd::supervision {
namespace {

ExitStatus ended_by(int signal, std::string why) { return {-1, signal, {}, std::move(why)}; }

void earliest(std::optional<MonoTime>& next, MonoTime when) {
  if (!next || when < *next) next = when;
}

}  // namespace

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting";
    case Phase::kLaunching:
      return "launching";
    case Phase::kRunning:
      return "running";
    case Phase::kStopping:
      return "stopping";
    case Phase::kKilling:
      return "killing";
    case Phase::kEnded:
      return "ended";
    case Phase::kAcknowledged:
      return "ended and acknowledged";
  }
  return "?";
}

Supervision::Supervision(Capacity capacity, SupervisionTimes times)
    : capacity_(capacity), times_(times), devices_(capacity.devices) {}

void Supervision::step(const Input& input, MonoTime now, Effects& out) {
  Turn turn{now, out};
  std::visit([&](const auto& i) { on(i, turn); }, input);
  check_invariants();
}

void Supervision::check_invariants() const {
  for (const auto& [name, job] : jobs_) {
    for (const auto& [member, process] : job.processes) {
      const auto newest = job.newest.find(member.worker);
      ANTDT_CHECK(newest != job.newest.end() && member.attempt <= newest->second,
                  "{} is newer than the newest attempt", describe({name, member}));
      ANTDT_CHECK(process.live() != process.status.has_value(), "{} is {} and {} exit status",
                  describe({name, member}), to_string(process.phase),
                  process.status ? "has an" : "has no");
    }
  }
}

// ----------------------------------------------------------------- starting

void Supervision::on(const StartWanted& e, Turn& turn) {
  const auto refuse = [&](wire::RefusalCode code, std::string reason) {
    turn.add(RefuseStart{e.key, e.seq, code, std::move(reason)});
  };
  if (e.key.member.worker.role == kJobDaemon.role || e.key.member.attempt == Attempt{} ||
      e.start->command.empty()) {
    return refuse(wire::RefusalCode::kInvalid,
                  fmt::format("cannot start {}: a process needs a command, an attempt "
                              "from 1 and a role letter other than '{}'",
                              describe(e.key), kJobDaemon.role));
  }
  if (std::string why = unsound(*e.start); !why.empty()) {
    return refuse(wire::RefusalCode::kInvalid,
                  fmt::format("cannot start {}: {}", describe(e.key), why));
  }
  Job& job = job_at(e.key.job, turn.now);
  heard(job, turn.now);
  const auto newest = job.newest.find(e.key.member.worker);
  if (newest != job.newest.end() && e.key.member.attempt < newest->second) {
    return refuse(wire::RefusalCode::kStale,
                  fmt::format("cannot start {}: attempt {} was started here already",
                              describe(e.key), newest->second));
  }
  if (Process* known = find_mutable(e.key)) return answer_again(e.key, *known, e.seq, turn);
  if (std::string why = misfit(*e.start, e.key); !why.empty())
    return refuse(wire::RefusalCode::kFull, why);
  const StartRequest start = lease_devices(e, turn);
  if (start == nullptr) return;

  // Only now, so that nothing is kept of what is refused.
  job.newest[e.key.member.worker] = e.key.member.attempt;
  job.orphan_timeout =
      std::max<Duration>(job.orphan_timeout, std::chrono::milliseconds(e.start->orphan_timeout_ms));
  Process process;
  process.start = start;
  process.seq = e.seq;
  job.processes[e.key.member] = std::move(process);
  retire_older(e.key.job, job, e.key.member, turn);
  launch_waiting(e.key.job, job, e.key.member.worker, turn);
}

void Supervision::answer_again(const ProcessKey& key, Process& process, std::uint64_t seq,
                               Turn& turn) {
  if (!process.live()) {
    process.phase = Phase::kEnded;  // its end is reported again until it is acknowledged
    process.deadline = turn.now + times_.exit_repeat;
    turn.add(ReportExit{key, *process.status});
  } else if (process.pid != 0) {
    turn.add(ReportStarted{key, process.pid, seq});
  } else {
    process.seq = seq;
  }
}

// The job daemon has given the older attempts up, so they get no grace. Attempts whose end it has
// acknowledged were kept only as the newest, which they no longer are.
void Supervision::retire_older(const std::string& name, Job& job, Member newer, Turn& turn) {
  for (auto it = job.processes.begin(); it != job.processes.end();) {
    const auto older = it++;  // because `older` may be erased
    const Member member = older->first;
    if (member.worker != newer.worker || member.attempt >= newer.attempt) continue;
    if (older->second.live()) {
      stop({name, member}, older->second, Duration::zero(), turn);
    } else if (older->second.phase == Phase::kAcknowledged) {
      job.processes.erase(older);
      turn.add(ForgetProcess{{name, member}});
    }
  }
}

void Supervision::launch_waiting(const std::string& name, Job& job, WorkerId worker, Turn& turn) {
  const auto newest = job.processes.find({worker, job.newest[worker]});
  if (newest == job.processes.end() || newest->second.phase != Phase::kWaiting) return;
  for (const auto& [member, process] : job.processes) {
    if (member.worker == worker && member != newest->first && process.live()) return;
  }
  newest->second.phase = Phase::kLaunching;
  turn.add(LaunchProcess{{name, newest->first}, newest->second.start});
}

void Supervision::on(const WorkerStarted& e, Turn& turn) {
  Process* process = find_mutable(e.key);
  if (process == nullptr || !process->live()) return;
  process->pid = e.pid;
  if (process->phase == Phase::kLaunching) process->phase = Phase::kRunning;
  turn.add(ReportStarted{e.key, e.pid, std::exchange(process->seq, 0)});
}

void Supervision::on(const ProcessFound& e, Turn& turn) {
  Job& job = job_at(e.key.job, turn.now);
  Attempt& newest = job.newest[e.key.member.worker];
  newest = std::max(newest, e.key.member.attempt);
  job.orphan_timeout =
      std::max<Duration>(job.orphan_timeout, std::chrono::milliseconds(e.start->orphan_timeout_ms));
  Process process;
  process.start = e.start;
  process.pid = e.pid;
  process.status = e.status;
  process.phase = e.status ? Phase::kEnded : e.pid != 0 ? Phase::kRunning : Phase::kLaunching;
  process.deadline = turn.now;
  if (process.status) process.status->device = evidence_of_devices(process.start, *process.status);
  if (process.live()) find_lease(e.key, process, turn);
  job.processes[e.key.member] = std::move(process);
}

void Supervision::on(const JobFound& e, Turn& turn) { job_at(e.job, turn.now); }

// ----------------------------------------------------------------- stopping

void Supervision::on(const StopWanted& e, Turn& turn) {
  const auto job = jobs_.find(e.key.job);
  if (job != jobs_.end()) heard(job->second, turn.now);
  Process* process = find_mutable(e.key);
  if (process == nullptr) {
    // The daemon that wants it stopped waits for its end.
    turn.add(ReportExit{e.key, ended_by(SIGKILL, "this host knows no such process")});
  } else if (process->live()) {
    stop(e.key, *process, e.grace, turn);
  }
}

void Supervision::stop(const ProcessKey& key, Process& process, Duration grace, Turn& turn) {
  const MonoTime deadline = turn.now + grace;
  switch (process.phase) {
    case Phase::kWaiting:
      return end(key, process, ended_by(SIGTERM, "stopped before it was started"), turn);
    case Phase::kLaunching:
    case Phase::kRunning:
      process.phase = Phase::kStopping;
      process.deadline = deadline;
      if (grace > Duration::zero()) turn.add(SignalProcess{key, Force::kTerminate});
      break;
    case Phase::kStopping:
      process.deadline = std::min(process.deadline, deadline);
      break;
    case Phase::kKilling:
    case Phase::kEnded:
    case Phase::kAcknowledged:
      return;
  }
  if (process.deadline <= turn.now) raise_force(key, process, turn);
}

void Supervision::raise_force(const ProcessKey& key, Process& process, Turn& turn) {
  const bool was_killed = process.phase == Phase::kKilling;
  process.phase = Phase::kKilling;
  process.deadline = turn.now + times_.kill_patience;
  turn.add(SignalProcess{key, was_killed ? Force::kDestroy : Force::kKill});
}

void Supervision::stop_all(const std::string& name, Job& job, Turn& turn) {
  for (auto& [member, process] : job.processes) {
    if (process.live()) stop({name, member}, process, times_.leftover_grace, turn);
  }
}

// What was being stopped already was stopped by the job daemon's order.
void Supervision::stop_orphans(const std::string& name, Job& job, Turn& turn) {
  for (auto& [member, process] : job.processes) {
    const ProcessKey key{name, member};
    if (process.phase == Phase::kWaiting) {
      ExitStatus status = ended_by(SIGTERM, "stopped before it was started");
      status.orphaned = true;
      end(key, process, std::move(status), turn);
    } else if (process.phase == Phase::kLaunching || process.phase == Phase::kRunning) {
      turn.add(MarkOrphaned{key});
      stop(key, process, times_.leftover_grace, turn);
    }
  }
}

// ------------------------------------------------------------------- ending

void Supervision::on(const ProcessEnded& e, Turn& turn) {
  Process* process = find_mutable(e.key);
  if (process == nullptr || !process->live()) return;
  end(e.key, *process, e.status, turn);
  launch_waiting(e.key.job, jobs_.at(e.key.job), e.key.member.worker, turn);
  sweep(e.key.job, turn);
}

void Supervision::end(const ProcessKey& key, Process& process, ExitStatus status, Turn& turn) {
  status.device = evidence_of_devices(process.start, status);
  leases::Effects none;
  devices_.step(leases::LeaseEnded{key}, none);
  process.phase = Phase::kEnded;
  process.status = std::move(status);
  process.deadline = turn.now + times_.exit_repeat;
  turn.add(ReportExit{key, *process.status});
}

void Supervision::on(const ExitAcknowledged& e, Turn& turn) {
  Process* process = find_mutable(e.key);
  if (process == nullptr || process->live()) return;
  process->phase = Phase::kAcknowledged;
  Job& job = jobs_.at(e.key.job);
  heard(job, turn.now);
  // The newest attempt is kept: its number fences older ones, and a repeated request for it must
  // not start it again.
  if (e.key.member.attempt == job.newest[e.key.member.worker]) return;
  job.processes.erase(e.key.member);
  turn.add(ForgetProcess{e.key});
}

void Supervision::on(const JobOver& e, Turn& turn) {
  const auto job = jobs_.find(e.job);
  if (job == jobs_.end()) {
    turn.add(ForgetJob{e.job});
    return;
  }
  job->second.standing = Standing::kOver;
  stop_all(e.job, job->second, turn);
  sweep(e.job, turn);
}

void Supervision::sweep(const std::string& name, Turn& turn) {
  Job& job = jobs_.at(name);
  if (job.standing != Standing::kOver) return;
  for (auto it = job.processes.begin(); it != job.processes.end();) {
    if (it->second.live()) {
      ++it;
      continue;
    }
    turn.add(ForgetProcess{{name, it->first}});
    it = job.processes.erase(it);
  }
  if (!job.processes.empty()) return;
  jobs_.erase(name);
  turn.add(ForgetJob{name});
}

// ----------------------------------------------------- the daemon's presence

void Supervision::on(const DaemonAttached& e, Turn& turn) {
  Job& job = job_at(e.job, turn.now);
  heard(job, turn.now);
  job.standing = Standing::kHeld;
  for (auto& [member, process] : job.processes) {
    if (process.phase != Phase::kEnded) continue;
    process.deadline = turn.now + times_.exit_repeat;
    turn.add(ReportExit{{e.job, member}, *process.status});
  }
}

void Supervision::on(const DaemonHeard& e, Turn& turn) {
  const auto job = jobs_.find(e.job);
  if (job != jobs_.end()) heard(job->second, turn.now);
}

void Supervision::heard(Job& job, MonoTime now) {
  job.last_heard = now;
  if (job.standing == Standing::kOrphaned) job.standing = Standing::kHeld;
}

// --------------------------------------------------------------------- time

void Supervision::on(const TimePassed&, Turn& turn) {
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) names.push_back(name);
  for (const std::string& name : names) {
    advance_job(name, jobs_.at(name), turn);
    sweep(name, turn);
  }
}

void Supervision::advance_job(const std::string& name, Job& job, Turn& turn) {
  for (auto& [member, process] : job.processes) advance_process({name, member}, process, turn);
  const Duration silence = turn.now - job.last_heard;
  const bool abandoned = job.orphan_timeout > Duration::zero() && silence >= job.orphan_timeout;
  if (abandoned && job.standing == Standing::kHeld && job.has_live()) {
    job.standing = Standing::kOrphaned;
    turn.add(
        WriteToLog{fmt::format("job {}: its daemon has been silent for {:.1f} s: its "
                               "processes here are stopped",
                               name, to_seconds(silence))});
    stop_orphans(name, job, turn);
  }
  if (!job.has_live() && silence >= times_.forget_after) job.standing = Standing::kOver;
}

void Supervision::advance_process(const ProcessKey& key, Process& process, Turn& turn) {
  if (process.deadline > turn.now) return;
  if (process.phase == Phase::kStopping || process.phase == Phase::kKilling) {
    raise_force(key, process, turn);
  } else if (process.phase == Phase::kEnded) {
    process.deadline = turn.now + times_.exit_repeat;
    turn.add(ReportExit{key, *process.status});
  }
}

std::optional<MonoTime> Supervision::next_wakeup() const {
  std::optional<MonoTime> next;
  for (const auto& [name, job] : jobs_) {
    if (const auto of_job = next_wakeup(job)) earliest(next, *of_job);
  }
  return next;
}

std::optional<MonoTime> Supervision::next_wakeup(const Job& job) const {
  std::optional<MonoTime> next;
  for (const auto& [member, process] : job.processes) {
    const bool forcing = process.phase == Phase::kStopping || process.phase == Phase::kKilling;
    const bool reporting = process.phase == Phase::kEnded;
    if (forcing || reporting) earliest(next, process.deadline);
  }
  if (!job.has_live()) {
    earliest(next, job.last_heard + times_.forget_after);
  } else if (job.orphan_timeout > Duration::zero() && job.standing == Standing::kHeld) {
    earliest(next, job.last_heard + job.orphan_timeout);
  }
  return next;
}

// --------------------------------------------------------------------- views

bool Supervision::Job::has_live() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const auto& entry) { return entry.second.live(); });
}

Supervision::Job& Supervision::job_at(const std::string& name, MonoTime now) {
  const auto [it, is_new] = jobs_.try_emplace(name);
  if (is_new) it->second.last_heard = now;
  return it->second;
}

const Supervision::Process* Supervision::find(const ProcessKey& key) const {
  const auto job = jobs_.find(key.job);
  if (job == jobs_.end()) return nullptr;
  const auto process = job->second.processes.find(key.member);
  return process == job->second.processes.end() ? nullptr : &process->second;
}

Supervision::Process* Supervision::find_mutable(const ProcessKey& key) {
  return const_cast<Process*>(std::as_const(*this).find(key));
}

Attempt Supervision::newest(const std::string& job, WorkerId worker) const {
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return {};
  const auto attempt = known->second.newest.find(worker);
  return attempt == known->second.newest.end() ? Attempt{} : attempt->second;
}

std::vector<wire::RunningProcess> Supervision::running(const std::string& job) const {
  std::vector<wire::RunningProcess> list;
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) return list;
  for (const auto& [member, process] : known->second.processes) {
    if (process.live() && process.phase != Phase::kWaiting) {
      list.push_back({member.worker, member.attempt, process.pid});
    }
  }
  return list;
}

bool Supervision::knows(const std::string& job) const { return jobs_.contains(job); }

bool Supervision::is_over(const std::string& job) const {
  const auto known = jobs_.find(job);
  return known != jobs_.end() && known->second.standing == Standing::kOver;
}

}  // namespace antdt::antdtd::supervision
