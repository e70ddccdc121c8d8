#include "sim/hosts/host.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include "antdtd/agent/outbox.h"
#include "antdtd/agent/worker_gate.h"
#include "core/wire/heartbeat.h"
#include "sim/model.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kJob = "sim";
constexpr const char* kUser = "sim";

antdtd::ProcessKey key_of(Member member) { return {kJob, member}; }
// An incarnation has one link to an agent.
std::string peer_of(Incarnation incarnation) { return std::to_string(incarnation.value); }

}  // namespace

Host::Host(World& world, HostClock clock, std::string name, std::uint32_t slots, Outside outside)
    : world_(world),
      clock_(clock),
      name_(std::move(name)),
      slots_(slots),
      outside_(std::move(outside)),
      machine_(world),
      agent_process_(world) {}

std::vector<std::shared_ptr<Program>> Host::living() const {
  std::vector<std::shared_ptr<Program>> found;
  for (const auto& [member, stored] : store_) {
    if (stored.process && stored.process->alive()) found.push_back(stored.process);
  }
  return found;
}

// ------------------------------------------------------------ crashes, restarts

void Host::crash_agent() {
  agent_.reset();
  agent_process_.end();
  armed_.reset();
}

void Host::start_agent() {
  if (agent_ || !powered_) return;
  agent_.emplace(Agent{antdtd::Supervision({static_cast<double>(slots_), 0, 0}), {}, {}, {}});
  if (known_) std::ignore = tell_links(antdtd::links::JobFound{kJob, *known_, kUser});
  const auto stored = store_;
  for (const auto& [member, s] : stored) {
    apply(antdtd::supervision::ProcessFound{key_of(member), s.start, s.pid, s.status});
  }
  agent_process_.after(clock_.real(wire::kHeartbeatInterval), [this] { heartbeat(); });
}

void Host::lose_power() {
  crash_agent();
  machine_.end();
  powered_ = suspended_ = false;
  for (auto& [member, stored] : store_) {
    if (stored.process) stored.process->lose_power();
    if (!stored.status) {
      stored.status = antdtd::ExitStatus{-1, SIGKILL, "", "was gone when this agent began"};
    }
  }
}

void Host::power_on(bool disk_is_empty, MonoTime clock) {
  if (powered_) return;
  powered_ = true;
  clock_.restart(clock);
  if (disk_is_empty) {
    store_.clear();
    known_.reset();
  }
  start_agent();
}

void Host::suspend() {
  if (suspended_ || !powered_ || !agent_) return;
  suspended_ = true;
  clock_.stand_still();
  machine_.freeze();
  agent_process_.freeze();
  for (const auto& worker : living()) worker->suspend();
}

void Host::wake() {
  if (!std::exchange(suspended_, false)) return;
  clock_.go_on();
  machine_.thaw();
  agent_process_.thaw();
  for (const auto& worker : living()) worker->wake();
}

// ------------------------------------------------------------------ supervision

void Host::apply(const antdtd::supervision::Input& event) {
  if (!agent_) return;
  antdtd::supervision::Effects effects;
  agent_->supervision.step(event, clock_.now(), effects);
  for (const antdtd::supervision::Effect& effect : effects) run(effect);
  arm();
}

void Host::run(const antdtd::supervision::Effect& effect) {
  using namespace antdtd::supervision;
  if (const auto* launched = std::get_if<LaunchProcess>(&effect)) {
    launch(launched->key.member, launched->start);
  } else if (const auto* signalled = std::get_if<SignalProcess>(&effect)) {
    signal(signalled->key.member, signalled->force);
  } else if (const auto* started = std::get_if<ReportStarted>(&effect)) {
    send_or_drop(Started{started->key.member, started->pid});
  } else if (const auto* orphan = std::get_if<MarkOrphaned>(&effect)) {
    const auto found = store_.find(orphan->key.member);
    if (found != store_.end()) found->second.orphaned = true;
  } else if (const auto* exit = std::get_if<ReportExit>(&effect)) {
    if (const auto due = agent_->sums.take(exit->key, clock_.now())) send_metrics(*due);
    const antdtd::ExitStatus& s = exit->status;
    send_or_drop(Exited{exit->key.member,
                        {s.code, s.signal, s.error, s.last_lines, s.oom, s.orphaned, s.device}});
  } else if (const auto* refuse = std::get_if<RefuseStart>(&effect)) {
    send_or_drop(
        StartRefused{refuse->key.member, fmt::format("{}: {}", refuse->code, refuse->reason)});
  } else if (const auto* forget = std::get_if<ForgetProcess>(&effect)) {
    store_.erase(forget->key.member);
  } else if (std::holds_alternative<ForgetJob>(effect)) {
    known_.reset();
    std::ignore = tell_links(antdtd::links::JobForgotten{kJob});
    agent_->kept.clear();
  }
}

// The agent starts the shim, which goes on without it.
void Host::launch(Member member, const antdtd::StartRequest& start) {
  store_[member] = Stored{};
  store_[member].start = start;
  machine_.after(world_.rng().time(milliseconds(20), milliseconds(500)), [this, member] {
    const auto found = store_.find(member);
    if (found == store_.end() || found->second.status) return;
    found->second.pid = ++pids_;
    found->second.process = outside_.make_program(*this, member, found->second.pid);
    found->second.process->start();
    apply(antdtd::supervision::WorkerStarted{key_of(member), found->second.pid});
  });
}

void Host::signal(Member member, antdtd::Force force) {
  const auto found = store_.find(member);
  if (found == store_.end()) return;
  if (found->second.process) {
    if (force == antdtd::Force::kTerminate) return found->second.process->terminate();
    return found->second.process->kill(SIGKILL);
  }
  if (found->second.status) return;
  found->second.status = antdtd::ExitStatus{-1, SIGKILL, "", "", "", found->second.orphaned};
  agent_process_.after(milliseconds(1), [this, member, status = *found->second.status] {
    apply(antdtd::supervision::ProcessEnded{key_of(member), status});
  });
}

void Host::program_exited(Program& program, int code, int signal) {
  const auto found = store_.find(program.member());
  if (found == store_.end() || found->second.status) return;
  found->second.status =
      antdtd::ExitStatus{code, signal, "", "", "", found->second.orphaned && code != 0};
  // Its last messages arrive before its end.
  agent_process_.after(milliseconds(2),
                       [this, member = program.member(), status = *found->second.status] {
                         apply(antdtd::supervision::ProcessEnded{key_of(member), status});
                       });
}

void Host::arm() {
  if (!agent_) return;
  auto next = agent_->supervision.next_wakeup();
  const auto is_attached = [this](const std::string&) { return attached(); };
  if (const auto due = agent_->sums.next_due(is_attached))
    next = next ? std::min(*next, *due) : *due;
  if (!next || (armed_ && *armed_ <= *next)) return;
  armed_ = *next;
  agent_process_.after(clock_.real(std::max(*next - clock_.now(), Duration(microseconds(100)))),
                       [this, when = *next, is_attached] {
                         if (armed_ != when) return;
                         armed_.reset();
                         for (const auto& due : agent_->sums.take_due(clock_.now(), is_attached)) {
                           send_metrics(due);
                         }
                         apply(antdtd::supervision::TimePassed{});
                       });
}

// ---------------------------------------------------------- with the job daemon

void Host::heartbeat() {
  send_or_drop(wire::Heartbeat{});
  agent_process_.after(clock_.real(wire::kHeartbeatInterval), [this] { heartbeat(); });
}

bool Host::attached() const { return agent_ && agent_->links.attached(kJob); }

void Host::send_or_drop(decltype(ToDaemon::body) body) {
  if (attached()) outside_.to_daemon({name_, *known_, std::move(body)});
}

void Host::relay(ctl::job::WorkerSaid message) {
  if (attached()) return send_or_drop(std::move(message));
  agent_->kept.push_back(std::move(message));
  if (agent_->kept.size() > antdtd::Outbox::kMaxMessages) agent_->kept.pop_front();
}

// Returns false if the input is refused.
bool Host::tell_links(const antdtd::links::Input& input) {
  antdtd::links::Effects wanted;
  agent_->links.step(input, wanted);
  return wanted.empty() || std::holds_alternative<antdtd::links::AdmitLink>(wanted.front());
}

void Host::attach(Incarnation incarnation) {
  if (!tell_links(antdtd::links::AttachAsked{kJob, incarnation, peer_of(incarnation), kUser})) {
    return;
  }
  known_ = incarnation;
  wire::AgentWelcome welcome;
  welcome.host = name_;
  welcome.cpus = agent_->supervision.free().cpus;
  welcome.running = agent_->supervision.running(kJob);
  send_or_drop(std::move(welcome));
  for (auto& message : std::exchange(agent_->kept, {})) send_or_drop(std::move(message));
  apply(antdtd::supervision::DaemonAttached{kJob});
}

void Host::receive(const ToAgent& message) {
  if (agent_) agent_process_.after({}, [this, message] { hear(message); });
}

void Host::hear(const ToAgent& message) {
  if (const auto* a = std::get_if<wire::Attach>(&message.body)) return attach(a->incarnation);
  if (!agent_->links.speaks_for(peer_of(message.from), kJob)) {
    return outside_.to_daemon({name_, message.from, NotAttached{}});
  }
  if (std::holds_alternative<wire::Heartbeat>(message.body)) {
    apply(antdtd::supervision::DaemonHeard{kJob});
  } else if (std::holds_alternative<wire::Detach>(message.body)) {
    apply(antdtd::supervision::JobOver{kJob});
  } else if (const auto* start = std::get_if<Start>(&message.body)) {
    auto wanted = std::make_shared<wire::StartProcess>();
    wanted->command = {"worker"};
    wanted->cpus = 1;
    wanted->orphan_timeout_ms = 5000;  // many cuts last longer
    wanted->report_ms = 200;
    apply(antdtd::supervision::StartWanted{key_of(start->member), std::move(wanted), 1});
  } else if (const auto* stop = std::get_if<Stop>(&message.body)) {
    apply(antdtd::supervision::StopWanted{key_of(stop->member), stop->grace});
  } else if (const auto* seen = std::get_if<ExitSeen>(&message.body)) {
    apply(antdtd::supervision::ExitAcknowledged{key_of(seen->member)});
  } else if (const auto* worker = std::get_if<ctl::job::SendToWorker>(&message.body)) {
    deliver(*worker);
  }
}

void Host::deliver(const ctl::job::SendToWorker& message) {
  if (!antdtd::hears_job_daemon(key_of(message.to), agent_->supervision)) return;
  const auto found = store_.find(message.to);
  if (found == store_.end() || !found->second.process) return;
  Told told{message.generation, message.seq, {}};
  std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, wire::PsServe> || std::is_same_v<Body, wire::PsCut>) {
          told.body = body;
        } else if constexpr (std::is_same_v<Body, ctl::SharedRoster>) {
          told.body = client::Inbound(body.for_wire());
        } else {
          told.body = client::Inbound(body);
        }
      },
      message.body);
  answer(*found->second.process, std::move(told));
}

// ------------------------------------------------------------------ with workers

void Host::answer(const Program& program, Told message) {
  // ipc keeps the order.
  const auto found = store_.find(program.member());
  if (found == store_.end()) return;
  machine_.after(microseconds(100),
                 [process = found->second.process, message = std::move(message)] {
                   if (process && process->alive()) process->receive(message);
                 });
}

void Host::from_program(Program& from, Said message) {
  if (!agent_) return;  // lost with the agent
  const Member member = from.member();
  const auto reply = [&](client::Inbound body) { answer(from, {{}, 0, std::move(body)}); };
  if (auto refused = antdtd::refusal_of(key_of(member), agent_->supervision)) {
    return reply(*std::move(refused));
  }
  if (std::holds_alternative<wire::Hello>(message.body)) {
    wire::WorkerWelcome welcome;
    welcome.version = 1;
    welcome.host = name_;
    welcome.run_dir = kRunDirectory;
    return reply(std::move(welcome));
  }
  if (const auto* report = std::get_if<wire::Report>(&message.body)) {
    agent_->sums.add(key_of(member), *report, milliseconds(200), clock_.now());
    return arm();
  }
  relay({member, message.generation, message.seq,
         std::get<ctl::job::WorkerBody>(std::move(message.body))});
}

void Host::send_metrics(const antdtd::ReportSums::Due& due) {
  send_or_drop(ctl::job::WorkerSaid{due.key.member, {}, 0, due.metrics});
}

}  // namespace antdt::sim
