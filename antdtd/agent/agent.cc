#include "antdtd/agent/agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "core/log/log.h"
#include "core/os/process.h"
#include "core/overloaded.h"
#include "core/wire/dispatch.h"
#include "core/wire/heartbeat.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kFlushPause = std::chrono::milliseconds(2);
constexpr std::uint32_t kDefaultReportMs = 1000;

wire::Envelope envelope_of(const ProcessKey& key, std::uint64_t seq = 0) {
  wire::Envelope envelope;
  envelope.job = key.job;
  envelope.worker = key.member.worker;
  envelope.attempt = key.member.attempt;
  envelope.seq = seq;
  return envelope;
}

}  // namespace

Agent::Agent(EventLoop& loop, AgentParts parts, AgentOptions options,
             const Accelerators& accelerators)
    : loop_(loop),
      options_(std::move(options)),
      store_(std::move(parts.store)),
      users_(std::move(parts.users)),
      supervision_(options_.capacity),
      accelerators_(accelerators),
      claims_(options_.device_claims),
      kept_directories_(options_.kept_directories) {
  runner_ = std::make_unique<ProcessRunner>(
      loop_, store_, std::move(parts.runner),
      ProcessRunner::Handlers{
          [this](const ProcessKey& key, std::uint32_t pid) { on_started(key, pid); },
          [this](const ProcessKey& key, const ExitStatus& status) { on_ended(key, status); },
          [this](const std::string& job) -> const UserIdentity& {
            return sockets_->owner_of(job);
          }});
  daemons_ = std::make_unique<DaemonLinks>(
      std::move(parts.control),
      DaemonLinks::Handlers{
          [this](const std::string& key) {
            return users_ == nullptr || users_->is_authorized(key);
          },
          [this](const std::string& key) { return user_of(key); },
          [this](const std::string& job, const UserIdentity& user) {
            return save_attach(job, user);
          },
          [this](const std::string& job, const UserIdentity& user) { return welcome(job, user); },
          [this](const std::string& job) { on_attached(job); },
          [this](const wire::Envelope& envelope, wire::Packet packet) {
            on_daemon_message(envelope, std::move(packet));
          },
          [this](const wire::Envelope& envelope, const wire::Packet& packet) {
            private_job_->start(envelope, packet);
          },
          [this](const wire::Envelope& envelope, const wire::Packet& packet,
                 const KnownUser& user) { on_admin(envelope, packet, user); },
          [this](const wire::Envelope& envelope, wire::Packet packet) {
            files_->handle(envelope, std::move(packet));
          }});
  if (users_ != nullptr) users_->on_change([this] { daemons_->drop_revoked(); });
  sockets_ = std::make_unique<UserSockets>(
      loop_, options_.host, supervision_, std::move(parts.socket_of),
      UserSockets::Handlers{
          [this](const ProcessKey& key, const wire::Report& report) { on_report(key, report); },
          [this](const std::string& job, wire::Packet packet) {
            daemons_->send(job, std::move(packet));
          }},
      std::move(parts.workers));
  files_ = std::make_unique<FileServices>(
      loop_, FileServices::Handlers{
                 [this](const std::string& run_dir,
                        const std::string& key) -> Result<FileServices::Child> {
                   ANTDT_TRY(const KnownUser user, user_of(key));
                   return runner_->start_file_service(run_dir, user.identity);
                 },
                 [this](const std::string& job, const std::string& key) {
                   return may_use_files(job, key);
                 },
                 [this](const wire::Packet& packet) { daemons_->send_to_peer(packet); }});
  adopt();
  loop_.watch_socket(daemons_->socket(), [this] { daemons_->receive(UserSockets::kBatch); });
  loop_.at_turn_end([this] { flush_soon(); });
  heartbeat_timer_ = loop_.call_after(wire::kHeartbeatInterval, [this] { heartbeat(); });
}

// The loop does not run again after this.
Agent::~Agent() {
  for (const ProcessKey& key : throttles_.stopped()) throttle(key, false);
  sockets_.reset();
  loop_.unwatch_socket(daemons_->socket());
  loop_.cancel(heartbeat_timer_);
  for (const auto& timer : {timer_, flush_timer_, look_timer_}) {
    if (timer) loop_.cancel(*timer);
  }
}

// ------------------------------------------------------------------- adopting

void Agent::adopt() {
  records_ = store_.jobs();
  drain_ = store_.drain();
  if (drain_) log_info("this host is drained {}: no process is started", wire::to_text(*drain_));
  for (const auto& [job, record] : records_) {
    if (record.incarnation != Incarnation{}) {
      daemons_->restore(job, record.incarnation, record.uid ? record.user : sockets_->own().name);
    }
    sockets_->adopt_owner(job, record);
  }
  private_job_.emplace(
      PrivateJob::Parts{loop_, real_clock_, store_, *runner_, *daemons_, records_},
      PrivateJob::Options{options_.is_private, options_.idle_exit, options_.orphan_timeout,
                          options_.log_file},
      PrivateJob::Calls{[this](const std::string& job) { apply(supervision::JobOver{job}); },
                        [this] { arm_timer(); }});
  // So that the leases that are found are of devices that are known. Nobody is told yet: the claims
  // of its own processes look like another agent's until it has joined them.
  look_at_devices();
  for (supervision::ProcessFound& adopted : runner_->adopt()) {
    log_info("found {}: {}", describe(adopted.key), adopted.status ? "ended" : "running");
    if (adopted.key.member.worker != kJobDaemon) {
      apply(adopted);
      if (adopted.status || adopted.pid == 0) continue;
      watch_throttled(adopted.key, adopted.pid);
      throttle(adopted.key, false);  // an agent that was killed may have left the process stopped
    } else {
      private_job_->adopt(adopted.key.member.attempt, adopted.status);
    }
  }
  claims_.join(supervision_.devices().leased_uuids());
  see_devices();
  for (const auto& [job, record] : records_) {
    // The private agent's own job lasts as long as its daemon, which that agent starts.
    if (job != private_job_->name()) apply(supervision::JobFound{job});
  }
  private_job_->begin();
}

// -------------------------------------------------------------------- effects

void Agent::apply(const supervision::Input& input) {
  supervision::Effects wanted;
  supervision_.step(input, loop_.now(), wanted);
  for (const supervision::Effect& effect : wanted) {
    std::visit([this](const auto& e) { run(e); }, effect);
  }
  arm_timer();
}

void Agent::run(const supervision::LaunchProcess& effect) {
  // Arguments may have passwords in them, and others read this log.
  const auto& command = effect.start->command;
  log_info("starting {}: {}, with {} arguments", describe(effect.key),
           command.empty() ? std::string() : command.front(),
           command.empty() ? 0 : command.size() - 1);
  const Status claimed = claim_devices(*effect.start);
  if (!claimed) return runner_->fail_start(effect.key, claimed.error());
  runner_->launch(effect.key, effect.start);
}

void Agent::run(const supervision::SignalProcess& effect) {
  log_info("{}: {}", effect.force == Force::kTerminate ? "stopping" : "killing",
           describe(effect.key));
  runner_->signal(effect.key, effect.force);
}

void Agent::run(const supervision::MarkOrphaned& effect) { runner_->mark_orphaned(effect.key); }

void Agent::run(const supervision::ReportStarted& effect) {
  daemons_->send_or_drop(effect.key.job, wire::make_packet(envelope_of(effect.key, effect.seq),
                                                           wire::ProcessStarted{effect.pid}));
}

// The worker's last measurements are sent first. Supervision repeats the report of the end.
void Agent::run(const supervision::ReportExit& effect) {
  if (const auto due = sums_.take(effect.key, loop_.now())) {
    send_metrics(*due);
  }
  const ExitStatus& status = effect.status;
  daemons_->send_or_drop(
      effect.key.job,
      wire::make_packet(
          envelope_of(effect.key),
          wire::ProcessExited{status.code, status.signal, status.error, status.last_lines,
                              status.oom, status.orphaned, status.device}));
}

void Agent::run(const supervision::RefuseStart& effect) {
  log_warn("{}", effect.reason);
  daemons_->send_or_drop(effect.key.job,
                         wire::make_packet(envelope_of(effect.key, effect.seq),
                                           wire::Refused{effect.code, effect.reason}));
}

void Agent::run(const supervision::ForgetProcess& effect) {
  runner_->forget(effect.key);
  if (WorkerLinks* workers = sockets_->of(effect.key.job)) workers->forget(effect.key);
  probes_.forget(effect.key);
  throttles_.forget(effect.key);
  throttled_.erase(effect.key);
}

void Agent::run(const supervision::ForgetJob& effect) {
  daemons_->forget(effect.job);
  files_->forget(effect.job);
  private_job_->job_forgotten(effect.job);
  if (effect.job == private_job_->name()) return;  // the job's daemon may still run
  records_.erase(effect.job);
  sockets_->forget(effect.job);
  store_.forget_job(effect.job);
}

void Agent::run(const supervision::WriteToLog& effect) { log_warn("{}", effect.text); }

// --------------------------------------------------------- from the job daemon

Status Agent::save_attach(const std::string& job, const UserIdentity& user) {
  const JobLinks::Job* link = daemons_->links().find(job);
  const auto known = records_.find(job);
  JobRecord record = known == records_.end() ? JobRecord{} : known->second;
  record.incarnation = link->incarnation;
  record.user = user.name;
  record.uid = user.uid;
  record.gid = user.gid;
  ANTDT_RETURN_IF_ERROR(sockets_->open(user));
  ANTDT_RETURN_IF_ERROR(store_.save_job(job, record));
  records_[job] = std::move(record);
  sockets_->set_owner(job, user);
  log_info("incarnation {} of the daemon of job {} of the user {} attached", link->incarnation, job,
           user.name);
  return {};
}

void Agent::on_attached(const std::string& job) {
  private_job_->daemon_spoke(job);
  apply(supervision::DaemonAttached{job});
}

// Whoever attaches decides what to place here by it.
wire::AgentWelcome Agent::welcome(const std::string& job, const UserIdentity& user) {
  see_devices();
  const Capacity free = supervision_.free();
  wire::AgentWelcome welcome;
  welcome.host = options_.host;
  welcome.address = options_.address;
  welcome.cpus = free.cpus;
  welcome.memory_bytes = free.memory_bytes;
  welcome.devices = free.devices;
  welcome.running = supervision_.running(job);
  welcome.drain = drain_;
  welcome.host_devices = devices_for(user);
  return welcome;
}

// A request for a process that was started already is answered on a drained host, too.
void Agent::start_process(const wire::Envelope& envelope, wire::StartProcess& start) {
  const ProcessKey key{envelope.job, {envelope.worker, envelope.attempt}};
  if (drain_ && supervision_.find(key) == nullptr) {
    return run(supervision::RefuseStart{
        key, envelope.seq, wire::RefusalCode::kFull,
        fmt::format("host {} is drained {}", options_.host, wire::to_text(*drain_))});
  }
  hide_devices(start);
  if (start.devices > 0) see_devices();  // what other agents have claimed since the last look
  apply(supervision::StartWanted{key, std::make_shared<wire::StartProcess>(std::move(start)),
                                 envelope.seq});
  // One that waits for an older attempt to end has its lease already.
  const Supervision::Process* const process = supervision_.find(key);
  if (process != nullptr && process->phase == supervision::Phase::kWaiting) {
    static_cast<void>(claim_devices(*process->start));
  }
}

void Agent::on_daemon_message(const wire::Envelope& envelope, wire::Packet packet) {
  const ProcessKey key{envelope.job, {envelope.worker, envelope.attempt}};
  private_job_->daemon_spoke(envelope.job);
  const Overloaded obey{
      [&](const wire::Heartbeat&) { apply(supervision::DaemonHeard{envelope.job}); },
      [&](wire::StartProcess& start) { start_process(envelope, start); },
      [&](const wire::StopProcess& stop) {
        apply(supervision::StopWanted{key, std::chrono::milliseconds(stop.grace_ms)});
      },
      [&](const wire::ExitSeen&) { apply(supervision::ExitAcknowledged{key}); },
      [&](const wire::ReservePort&) { reserve_port(envelope, packet); },
      [&](const wire::Detach&) { detach(envelope.job); },
      [&](wire::RelayedReply& reply) { on_relayed_reply(envelope, std::move(reply)); }};
  const bool known =
      wire::dispatch<wire::Heartbeat, wire::StartProcess, wire::StopProcess, wire::ExitSeen,
                     wire::ReservePort, wire::Detach, wire::RelayedReply>(
          envelope.kind, packet.body, [&](auto message) {
            if (message) return obey(*message);
            daemons_->refuse(packet, envelope, wire::RefusalCode::kInvalid,
                             message.error().message);
          });
  if (known) return;
  if (envelope.attempt != Attempt{}) {
    WorkerLinks* workers = sockets_->of(envelope.job);
    return workers == nullptr ? void() : workers->deliver(key, std::move(packet));
  }
  daemons_->refuse(packet, envelope, wire::RefusalCode::kInvalid,
                   fmt::format("an agent does not know messages of kind '{}'", envelope.kind));
}

Result<KnownUser> Agent::user_of(const std::string& key) const {
  if (users_ == nullptr) return KnownUser{"", sockets_->own(), false};
  return users_->find(key);
}

// Any user may ask for files of a job that this agent does not know (or has forgotten): they are
// read and written with that user's rights.
Status Agent::may_use_files(const std::string& job, const std::string& key) const {
  ANTDT_TRY(const KnownUser user, user_of(key));
  const JobLinks::Job* known = daemons_->links().find(job);
  if (known == nullptr || sockets_->owner_of(job).uid == user.identity.uid) return {};
  return fail(ErrorKind::kRefused, "job {} is another user's", job);
}

void Agent::reserve_port(const wire::Envelope& envelope, const wire::Packet& packet) {
  const Result<std::uint16_t> port = free_port(options_.address);
  if (!port)
    return daemons_->refuse(packet, envelope, wire::RefusalCode::kFull, port.error().message);
  daemons_->reply(packet, wire::make_packet(envelope, wire::ReservedPort{*port}));
}

void Agent::detach(const std::string& job) {
  log_info("job {} is over", job);
  private_job_->daemon_detached(job);
  apply(supervision::JobOver{job});
}

// ------------------------------------------------------------- from processes

void Agent::on_started(const ProcessKey& key, std::uint32_t pid) {
  if (key.member.worker != kJobDaemon) {
    counts_.started();
    return apply(supervision::WorkerStarted{key, pid});
  }
  private_job_->daemon_started(pid);
}

void Agent::on_ended(const ProcessKey& key, const ExitStatus& status) {
  if (key.member.worker == kJobDaemon) {
    return private_job_->daemon_ended(key.member.attempt, status);
  }
  counts_.ended(status);
  // What the worker sent last is relayed before its end is reported.
  if (WorkerLinks* workers = sockets_->of(key.job)) workers->receive(UserSockets::kBatch);
  log_info("{} ended: code {}, signal {} {}{}", describe(key), status.code, status.signal,
           status.error, status.oom.empty() ? "" : "out of memory: " + status.oom);
  if (may_be_of_a_device(key, status)) return hold_end(key, status);
  apply(supervision::ProcessEnded{key, status});
  claims_.keep_only(supervision_.devices().leased_uuids());
}

void Agent::on_report(const ProcessKey& key, const wire::Report& report) {
  const Supervision::Process* process = supervision_.find(key);
  const std::uint32_t period = process == nullptr || process->start->report_ms == 0
                                   ? kDefaultReportMs
                                   : process->start->report_ms;
  sums_.add(key, report, std::chrono::milliseconds(period), loop_.now());
  const bool all_the_time = report.throttle_permille == 0 || report.throttle_permille >= 1000;
  if (!all_the_time && process != nullptr) watch_throttled(key, process->pid);
  throttles_.set(key, all_the_time ? 1 : report.throttle_permille / 1000.0, loop_.now());
  arm_timer();
}

// If the process has gone meanwhile, it is not signalled, nor is a later process with the same pid.
void Agent::throttle(const ProcessKey& key, bool stop) {
  const Supervision::Process* process = supervision_.find(key);
  const auto began = throttled_.find(key);
  if (process == nullptr || began == throttled_.end()) return;
  const Status sent = runner_->signal_owned(key.job, static_cast<pid_t>(process->pid),
                                            began->second, stop ? SIGSTOP : SIGCONT);
  if (!sent) log_debug("{}: {}", describe(key), sent.error().message);
}

// From now on the process may be stopped and continued.
void Agent::watch_throttled(const ProcessKey& key, std::uint32_t pid) {
  const auto began = process_start_time(static_cast<pid_t>(pid));
  if (began) throttled_.try_emplace(key, *began);
}

void Agent::send_metrics(ReportSums::Due due) {
  if (const Supervision::Process* process = supervision_.find(due.key)) {
    const MonoTime now = loop_.now();
    const auto held_back =
        std::chrono::duration_cast<std::chrono::microseconds>(throttles_.held_back(due.key, now));
    due.metrics.probe =
        probes_.look(due.key, process->pid, runner_->cgroup_of(due.key),
                     static_cast<std::uint64_t>(held_back.count()), accelerators_.held_down(), now);
  }
  daemons_->send_or_drop(due.key.job, wire::make_packet(envelope_of(due.key), due.metrics));
}

// ------------------------------------------------------------------------ time

void Agent::arm_timer() {
  std::optional<MonoTime> next = supervision_.next_wakeup();
  for (const auto& other :
       {private_job_->next_wakeup(), sums_.next_due(attached()), throttles_.next_due()}) {
    if (other && (!next || *other < *next)) next = other;
  }
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  if (next) timer_ = loop_.call_at(*next, [this] { on_timer(); });
}

void Agent::on_timer() {
  timer_.reset();
  // if this process was stopped, only the agent was silent, not the daemons
  daemons_->receive(UserSockets::kBatch);
  private_job_->advance();
  for (const auto& [key, stop] : throttles_.due(loop_.now())) throttle(key, stop);
  for (const ReportSums::Due& due : sums_.take_due(loop_.now(), attached())) send_metrics(due);
  apply(supervision::TimePassed{});
}

void Agent::heartbeat() {
  daemons_->heartbeat_all();
  see_devices();
  kept_directories_.tend(loop_.now());
  heartbeat_timer_ = loop_.call_after(wire::kHeartbeatInterval, [this] { heartbeat(); });
}

// Nothing announces that a slow peer has room again.
void Agent::flush_soon() {
  if (flush_timer_) return;
  const bool daemons_left = daemons_->flush();
  const bool workers_left = sockets_->flush();
  if (!daemons_left && !workers_left) return;
  flush_timer_ = loop_.call_after(kFlushPause, [this] { flush_timer_.reset(); });
}

}  // namespace antdt::antdtd
