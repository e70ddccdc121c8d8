#include "sim/daemon.h"

#include <algorithm>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// As in cmd/antdt-jobd.
constexpr Duration kTick = milliseconds(100);
constexpr Duration kSilence = milliseconds(2500);
constexpr Duration kHeartbeat = seconds(1);
constexpr Duration kRepeat = seconds(2);
constexpr Duration kHostLostAfter = seconds(6);
constexpr std::uint64_t kTurnsToSnapshot = 200;
constexpr std::size_t kKeep = 3;
constexpr Duration kDeafAfter = milliseconds(1500);

}  // namespace

Daemon::Daemon(World& world, ctl::JobMachineConfig config, std::vector<std::string> hosts,
               std::uint32_t workers, SharedFiles& files, Sabotage sabotage, Outside outside)
    : world_(world),
      config_(std::move(config)),
      hosts_(std::move(hosts)),
      workers_(workers),
      files_(files),
      sabotage_(sabotage),
      outside_(std::move(outside)) {}

void Daemon::start() {
  if (runs()) return;
  incarnation_ = incarnation_.next();
  ctl::JobMachineConfig config = config_;
  config.incarnation = incarnation_;
  auto opened = ctl::JobMachine::open(std::move(config), *ctl::make_solution("nd"), journal_);
  if (!opened) {
    return world_.violate("the journal can be replayed", opened.error().message);
  }
  if (!durable_ledger_.empty() && opened->ledger().image() != durable_ledger_) {
    world_.violate("a replay comes to the same state", "the ledger differs");
  }
  machine_.emplace(std::move(*opened));
  world_.say("daemon: incarnation {} begins", incarnation_);
  soon([this] {
    machine_->known() ? feed(ctl::in::Recovered{}) : feed(ctl::in::Declared{});
    for (const std::string& host : hosts_) {
      links_[host].last_heard = world_.now();
      send(host, wire::Attach{incarnation_});
    }
  });
  every(kTick, [this] { tick(); });
  every(kHeartbeat, [this] { beat(); });
  every(machine_->control_interval(), [this] { feed(ctl::in::ControlTick{}); });
}

void Daemon::crash() {
  if (!runs()) return;
  // SQLite was writing: the turn is there, or it is not.
  if (committing_ && world_.rng().chance(0.5)) commit();
  world_.say("daemon: incarnation {} crashes", incarnation_);
  if (sabotage_ == Sabotage::kLyingDisk) {
    journal_ = older_;
    durable_ledger_.clear();
  }
  life_.end();
  machine_.reset();
  links_.clear();
  asked_.clear();
  inbox_.clear();
  pending_.clear();
  outbox_.clear();
  inbound_.reset();
  in_turn_ = committing_ = false;
}

// ----------------------------------------------------------------------- turns

void Daemon::soon(Job job) {
  inbox_.push_back(std::move(job));
  if (in_turn_) return;
  in_turn_ = true;
  world_.after(life_, microseconds(50), [this] { turn(); });
}

void Daemon::turn() {
  for (const Job& job : std::exchange(inbox_, {})) job();
  finish_turn();
}

void Daemon::finish_turn() {
  if (const auto image = machine_->image_if_changed()) {
    pending_.push_back({std::string(ctl::kImageRecord), *image});
  }
  committing_ = true;
  if (sabotage_ == Sabotage::kForgetTurn) {
    for (Outgoing& out : std::exchange(outbox_, {})) outside_.to_agent(out.host, out.message);
  }
  const bool stalls = world_.rng().chance(0.01);
  const Duration sync = pending_.empty()
                            ? Duration{}
                            : world_.rng().time(microseconds(100), milliseconds(stalls ? 200 : 1));
  world_.after(life_, sync, [this] {
    commit();
    committing_ = false;
    for (Outgoing& out : std::exchange(outbox_, {})) outside_.to_agent(out.host, out.message);
    in_turn_ = false;
    if (!inbox_.empty()) soon([] {});
  });
}

void Daemon::commit() {
  const bool changed = !pending_.empty();
  for (shard_server::JournalEntry& entry : std::exchange(pending_, {})) {
    journal_.records.push_back(std::move(entry));
  }
  if (!changed) return;
  if (++turns_ % kTurnsToSnapshot == 0) {
    journal_.snapshot = machine_->snapshot();
    journal_.records.clear();
  }
  if (sabotage_ == Sabotage::kLyingDisk && turns_ % 20 == 0) older_ = journal_;
  durable_ledger_ = machine_->ledger().image();
  outside_.durable(*machine_);
}

void Daemon::feed_soon(ctl::JobInput input) {
  if (runs()) soon([this, input = std::move(input)] { feed(input); });
}

void Daemon::feed(const ctl::JobInput& input) {
  ctl::JobOutputs outputs;
  machine_->step(input, world_.now(), outputs);
  for (ctl::JobOutput& output : outputs) {
    std::visit([this](auto& o) { perform(o); }, output);
  }
}

// ------------------------------------------------------------------------ time

void Daemon::every(Duration period, Job job) {
  world_.after(life_, period, [this, period, job] {
    soon(job);
    every(period, job);
  });
}

void Daemon::tick() {
  repeat_requests();
  for (const auto& [host, link] : links_) {
    if (world_.now() - link.last_heard > kSilence) feed(ctl::in::HostSilent{host});
  }
  feed(ctl::in::Tick{});
}

void Daemon::beat() {
  for (auto& [host, link] : links_) {
    if (link.welcome) {
      send(host, wire::Heartbeat{});
    } else {
      send(host, wire::Attach{incarnation_});
    }
    if (link.lost || world_.now() - link.last_heard <= kHostLostAfter) continue;
    link.lost = true;
    link.welcome = false;
    world_.say("daemon: {} is lost", host);
    feed(ctl::job::HostLost{host, "silent"});
  }
}

void Daemon::repeat_requests() {
  const auto workers = machine_->lifecycle().workers();
  for (const ctl::WorkerProcess& w : workers) {
    if (!w.running()) continue;
    const auto asked = asked_.find(w.member());
    if (asked != asked_.end() && world_.now() - asked->second < kRepeat) continue;
    if (w.asked_to_stop && machine_->lifecycle().seconds() >= w.killed_from_s) {
      perform(ctl::job::StopWorker{w.member(), w.place.host, {}});
    } else if (w.state == ctl::WorkerProcess::kPlanned && !w.asked_to_stop) {
      perform(ctl::job::StartWorker{w.member(), w.place.host});
    }
  }
}

// -------------------------------------------------------------------- messages

void Daemon::receive(ToDaemon message) {
  if (!runs() || message.to != incarnation_) return;
  if (sabotage_ == Sabotage::kDeaf && world_.elapsed() > kDeafAfter) return;
  soon([this, message = std::move(message)] { hear(message); });
}

void Daemon::hear(const ToDaemon& message) {
  Link& link = links_[message.host];
  link.last_heard = world_.now();
  link.lost = false;
  if (const auto* welcome = std::get_if<wire::AgentWelcome>(&message.body)) {
    const bool first = !std::exchange(link.welcome, true);
    if (first) welcomed(message.host, *welcome);
  } else if (std::holds_alternative<NotAttached>(message.body)) {
    link.welcome = false;  // the next beat attaches again
  } else if (const auto* started = std::get_if<Started>(&message.body)) {
    feed(ctl::job::Started{started->member, started->pid});
  } else if (const auto* exited = std::get_if<Exited>(&message.body)) {
    send(message.host, ExitSeen{exited->member});
    feed(ctl::job::Exited{exited->member, exited->exit});
  } else if (const auto* refused = std::get_if<StartRefused>(&message.body)) {
    feed(ctl::job::StartRefused{refused->member, refused->reason});
  } else if (const auto* said = std::get_if<ctl::in::FromWorker>(&message.body)) {
    inbound_ = {said->member, message.host};
    feed(*said);
    inbound_.reset();
  }
}

void Daemon::welcomed(const std::string& host, const wire::AgentWelcome& welcome) {
  ctl::HostState state;
  state.host = state.name = host;
  state.order = static_cast<std::uint32_t>(std::ranges::find(hosts_, host) - hosts_.begin());
  state.room = static_cast<std::uint32_t>(welcome.cpus + welcome.running.size());
  feed(ctl::in::HostWelcome{state, welcome.running});
  const bool all = std::ranges::all_of(links_, [](const auto& l) { return l.second.welcome; });
  const ctl::Lifecycle& life = machine_->lifecycle();
  if (all && life.workers().empty() && life.state() == ctl::JobState::kStarting) place();
}

void Daemon::place() {
  std::vector<ctl::PlacedWorker> placed;
  std::map<std::string, std::uint32_t> taken;
  for (std::uint32_t i = 0, host = 0; i < workers_; ++host) {
    const std::string& name = hosts_[host % hosts_.size()];
    const auto* known = machine_->lifecycle().hosts().find(name);
    if (host > 1000) break;
    if (known == nullptr || taken[name] >= known->room) continue;
    ++taken[name];
    placed.push_back({WorkerId{'w', i++}, name, known->order});
  }
  feed(ctl::job::Placed{std::move(placed)});
}

void Daemon::send(const std::string& host, decltype(ToAgent::body) body) {
  outbox_.push_back({host, {incarnation_, std::move(body)}});
}

// --------------------------------------------------------------------- outputs

void Daemon::perform(const ctl::out::Persist& o) {
  pending_.push_back({std::string(o.kind), o.bytes});
}

void Daemon::perform(const ctl::out::ToWorker& o) {
  const ctl::WorkerProcess* w = machine_->lifecycle().find(o.to.worker);
  const bool answers = inbound_ && inbound_->first == o.to;
  if (!answers && w == nullptr) return;
  ctl::out::ToWorker message = o;
  if (sabotage_ != Sabotage::kNone) sabotage(message);
  if (const auto* grants = std::get_if<wire::Grants>(&message.body)) {
    if (grants->status == "end") outside_.said_end(*machine_, grants->phase);
  }
  send(answers ? inbound_->second : w->place.host, std::move(message));
}

void Daemon::sabotage(ctl::out::ToWorker& message) {
  auto* grants = std::get_if<wire::Grants>(&message.body);
  if (grants == nullptr || grants->status == "stale") return;
  if (sabotage_ == Sabotage::kEndEarly && !machine_->ledger().complete() &&
      world_.rng().chance(0.02)) {
    grants->status = "end";
    grants->pieces.clear();
  }
  if (sabotage_ == Sabotage::kGrantTwice && !grants->pieces.empty()) {
    if (granted_ && granted_->phase == grants->phase && world_.rng().chance(0.1)) {
      grants->pieces = granted_->pieces;
    }
    granted_ = *grants;
  }
}

void Daemon::perform(const ctl::job::StartWorker& o) {
  asked_[o.member] = world_.now();
  send(o.host, Start{o.member});
}

void Daemon::perform(const ctl::job::StopWorker& o) {
  asked_[o.member] = world_.now();
  send(o.host, Stop{o.member, o.grace});
}

// In files at once: a crash may find a checkpoint that the journal does not know.
void Daemon::perform(const ctl::out::StoreCheckpoint& o) {
  const std::string name = fmt::format("l{:05}-s{:08}-g{:05}-{}.{}", o.lineage, o.written.step,
                                       o.generation, o.writer.worker, o.writer.attempt);
  const auto written = files_.written.find(o.written.directory);
  std::string error;
  if (files_.checkpoints.contains(name)) {
    files_.written.erase(o.written.directory);
  } else if (written == files_.written.end()) {
    error = "no such directory";
  } else {
    const auto& kept = files_.checkpoints[name] = {std::move(written->second), o.lineage,
                                                   o.ledger_image, o.accounts_image};
    files_.written.erase(written);
    outside_.stored(kept);
    while (files_.checkpoints.size() > kKeep) files_.checkpoints.erase(files_.checkpoints.begin());
  }
  feed(ctl::in::CheckpointStored{o.written.number, o.written.step, name, error});
}

void Daemon::perform(const ctl::out::FindCheckpoint&) {
  ctl::in::CheckpointFound found;
  if (!files_.checkpoints.empty()) {
    const auto& [name, newest] = *files_.checkpoints.rbegin();
    found = {name, newest.state.step, newest.ledger_image, newest.accounts_image};
  }
  feed(found);
}

void Daemon::perform(const ctl::out::Note& o) { world_.say("note {}: {}", o.kind, o.text); }

void Daemon::perform(const ctl::job::End& o) {
  for (const std::string& host : hosts_) send(host, wire::Detach{});
  outside_.ended(o.outcome);
}

}  // namespace antdt::sim
