#include "sim/daemon.h"

#include <algorithm>
#include <tuple>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// As in cmd/antdt-jobd.
constexpr Duration kTick = milliseconds(100);
constexpr Duration kSilence = milliseconds(2500);
constexpr Duration kHostLostAfter = seconds(6);
constexpr std::uint64_t kTurnsToSnapshot = 200;
constexpr Duration kLookForRoom = seconds(1);
constexpr Duration kDeafAfter = milliseconds(1500);

}  // namespace

Daemon::Daemon(World& world, HostClock clock, ctl::JobMachineConfig config,
               std::vector<std::string> hosts, std::uint32_t workers, SharedFiles& files,
               Disk& disk, Sabotage sabotage, Outside outside)
    : world_(world),
      clock_(clock),
      config_(std::move(config)),
      hosts_(std::move(hosts)),
      workers_(workers),
      files_(files),
      disk_(disk),
      sabotage_(sabotage),
      outside_(std::move(outside)),
      process_(world) {}

bool Daemon::start() {
  const auto incarnation = disk_.open();
  if (!incarnation) {
    world_.say("daemon: no room to begin");
    return false;
  }
  incarnation_ = *incarnation;
  low_on_space_ = !disk_.restore_ballast();
  ctl::JobMachineConfig config = config_;
  config.incarnation = incarnation_;
  auto opened =
      ctl::JobMachine::open(std::move(config), *ctl::make_solution("nd"), disk_.journal());
  if (!opened) {
    world_.violate("the journal can be replayed", opened.error().message);
    return true;
  }
  if (!disk_.ledger.empty() && opened->ledger().image() != disk_.ledger) {
    world_.violate("a replay comes to the same state", "the ledger differs");
  }
  machine_.emplace(std::move(*opened));
  skips_ = disk_.skips;
  world_.say("daemon: incarnation {} begins", incarnation_);
  soon([this] { begin(); });
  every(kTick, [this] { tick(); });
  every(kHeartbeat, [this] { beat(); });
  every(machine_->control_interval(), [this] { feed(ctl::job::ControlTickPassed{}); });
  return true;
}

void Daemon::begin() {
  if (!machine_->known()) {
    feed(ctl::job::JobCreated{});
  } else if (disk_.resume_requested) {
    feed(ctl::job::OperatorAsked{"resume", "a test"});
    feed(ctl::job::ResumeOrdered{});
  } else {
    feed(ctl::job::IncarnationRecovered{});
  }
  for (const std::string& host : hosts_) {
    links_[host].last_heard = clock_.now();
    send(host, wire::Attach{incarnation_});
  }
}

void Daemon::crash() {
  if (!runs()) return;
  // It was writing: the turn is there, or it is not, and so is the snapshot.
  if (committing_ && world_.rng().chance(0.5)) std::ignore = commit(world_.rng().chance(0.5));
  if (sabotage_ == Sabotage::kLyingDisk) {
    disk_.forget();
  }
  end("crashes");
}

void Daemon::end(const char* why) {
  world_.say("daemon: incarnation {} {}", incarnation_, why);
  process_.end();
  machine_.reset();
  inbox_.clear();
  pending_.clear();
  outbox_.clear();
}

void Daemon::freeze(bool with_its_clock) {
  process_.freeze();
  if (with_its_clock) clock_.stand_still();
}

void Daemon::thaw() {
  clock_.go_on();
  process_.thaw();
}

// ----------------------------------------------------------------------- turns

void Daemon::soon(Job job) {
  inbox_.push_back(std::move(job));
  if (in_turn_) return;
  in_turn_ = true;
  process_.after(microseconds(50), [this] { turn(); });
}

void Daemon::turn() {
  for (const Job& job : std::exchange(inbox_, {})) job();
  finish_turn();
}

void Daemon::finish_turn() {
  declare_skips();
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
  process_.after(sync, [this] { committed(); });
}

void Daemon::committed() {
  const Disk::Wrote wrote = commit();
  if (wrote != Disk::Wrote::kDone) {
    end(wrote == Disk::Wrote::kNoRoom ? "has no room for its journal" : "was taken over");
    return outside_.died();
  }
  committing_ = false;
  if (outside_.dies_before_sending && outside_.dies_before_sending(*machine_)) {
    end("crashes before it says what it decided");
    return outside_.died();
  }
  keep_skips();
  pause_if_disk_is_full();
  if (disk_.resume_requested && machine_->known()) disk_.resume_requested = false;
  for (Outgoing& out : std::exchange(outbox_, {})) outside_.to_agent(out.host, out.message);
  if (outcome_) {
    outside_.ended(*outcome_);
    return end("is done");
  }
  in_turn_ = false;
  if (!inbox_.empty()) soon([] {});
}

Disk::Wrote Daemon::commit(bool with_snapshot) {
  const std::vector<shard_server::JournalEntry> turn = std::exchange(pending_, {});
  if (turn.empty()) return Disk::Wrote::kDone;
  const bool was_there = disk_.has_ballast();
  Disk::Wrote wrote = disk_.append(incarnation_, turn);
  if (wrote != Disk::Wrote::kDone) return wrote;
  if (++disk_.turns % kTurnsToSnapshot == 0 && with_snapshot) {
    wrote = disk_.snapshot(incarnation_, machine_->snapshot());
  }
  low_on_space_ = low_on_space_ || (was_there && !disk_.has_ballast());
  if (sabotage_ == Sabotage::kLyingDisk && disk_.turns % 20 == 0) disk_.older = disk_.journal();
  disk_.ledger = machine_->ledger().image();
  outside_.durable(*machine_);
  return wrote;
}

void Daemon::pause_if_disk_is_full() {
  if (paused_ || !low_on_space_) return;
  world_.say("daemon: pauses, its disk is full");
  paused_ = clock_.now();
  feed(ctl::job::PauseChanged{true});
}

void Daemon::go_on_if_there_is_room() {
  if (!paused_ || clock_.now() - *paused_ < kLookForRoom) return;
  paused_ = clock_.now();
  if (sabotage_ == Sabotage::kStayPaused || !disk_.restore_ballast()) return;
  world_.say("daemon: goes on, there is room");
  low_on_space_ = false;
  paused_.reset();
  feed(ctl::job::PauseChanged{false});
}

// ----------------------------------------------------------------------- skips

void Daemon::skip(std::uint64_t from, std::uint64_t to) {
  if (!runs()) return;
  soon([this, from, to] {
    const shard_server::Phase& open = machine_->ledger().phase();
    const bool trains = open.number > 0 && open.kind == shard_server::PhaseKind::kTrain;
    if (!trains || !machine_->check(wire::SkipRecords{from, to, "a test", "a test"})) return;
    skips_.push_back({open.epoch, from, to, {}});
    declare_skips();
    if (sabotage_ == Sabotage::kSkipUnasked) {
      feed(ctl::job::SkipOrdered{{0, machine_->ledger().records(), "a test", "a test"}});
    }
  });
}

// After they are durable, so that only the newest incarnation writes them, and
// before anybody is told.
void Daemon::keep_skips() {
  if (declared_.empty()) return;
  disk_.skips = skips_;
  for (const KeptSkip& skip : std::exchange(declared_, {})) outside_.skipped(*machine_, skip, true);
}

// In every lineage once more.
void Daemon::declare_skips() {
  const shard_server::Phase open = machine_->ledger().phase();
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return;
  const Lineage lineage = machine_->membership().lineage();
  for (KeptSkip& skip : skips_) {
    if (skip.epoch != open.epoch || skip.lineage >= lineage) continue;
    if (sabotage_ != Sabotage::kForgetSkip) {
      feed(ctl::job::SkipOrdered{{skip.from, skip.to, "a test", "a test"}});
    }
    skip.lineage = lineage;
    declared_.push_back(skip);
    outside_.skipped(*machine_, skip, false);
  }
}

void Daemon::feed_soon(ctl::job::Input input) {
  if (runs()) soon([this, input = std::move(input)] { feed(input); });
}

void Daemon::feed(const ctl::job::Input& input) {
  ctl::job::Effects outputs;
  machine_->step(input, clock_.now(), outputs);
  for (ctl::job::Effect& output : outputs) {
    std::visit([this](auto& o) { perform(o); }, output);
  }
}

// ------------------------------------------------------------------------ time

void Daemon::every(Duration period, Job job) {
  process_.after(clock_.real(period), [this, period, job] {
    soon(job);
    every(period, job);
  });
}

void Daemon::tick() {
  repeat_requests();
  go_on_if_there_is_room();
  for (const auto& [host, link] : links_) {
    if (clock_.now() - link.last_heard > kSilence) feed(ctl::job::HostFellSilent{host});
  }
  feed(ctl::job::TimePassed{});
}

void Daemon::beat() {
  for (auto& [host, link] : links_) {
    if (link.welcome) {
      send(host, wire::Heartbeat{});
    } else {
      send(host, wire::Attach{incarnation_});
    }
    if (link.lost || clock_.now() - link.last_heard <= kHostLostAfter) continue;
    link.lost = true;
    link.welcome = false;
    world_.say("daemon: {} is lost", host);
    feed(ctl::lifecycle::HostLost{host, "silent"});
  }
}

void Daemon::repeat_requests() {
  const auto due = requests_.due(machine_->lifecycle(), clock_.now());
  for (const auto& request : due) std::visit([this](const auto& o) { perform(o); }, request);
}

// -------------------------------------------------------------------- messages

void Daemon::receive(ToDaemon message) {
  if (!runs() || message.to != incarnation_) return;
  if (sabotage_ == Sabotage::kDeaf && world_.elapsed() > kDeafAfter) return;
  soon([this, message = std::move(message)] { hear(message); });
}

void Daemon::hear(const ToDaemon& message) {
  Link& link = links_[message.host];
  link.last_heard = clock_.now();
  link.lost = false;
  if (const auto* welcome = std::get_if<wire::AgentWelcome>(&message.body)) {
    const bool first = !std::exchange(link.welcome, true);
    if (first) welcomed(message.host, *welcome);
  } else if (std::holds_alternative<NotAttached>(message.body)) {
    link.welcome = false;  // the next beat attaches again
  } else if (const auto* started = std::get_if<Started>(&message.body)) {
    feed(ctl::lifecycle::WorkerStarted{started->member, started->pid});
  } else if (const auto* exited = std::get_if<Exited>(&message.body)) {
    send(message.host, ExitSeen{exited->member});
    feed(ctl::lifecycle::WorkerExited{exited->member, exited->exit});
  } else if (const auto* refused = std::get_if<StartRefused>(&message.body)) {
    feed(ctl::lifecycle::WorkerStartRefused{refused->member, refused->reason});
  } else if (const auto* said = std::get_if<ctl::job::WorkerSaid>(&message.body)) {
    hear_worker(message, *said);
  }
}

void Daemon::hear_worker(const ToDaemon& message, const ctl::job::WorkerSaid& said) {
  const bool grows_the_journal = std::holds_alternative<wire::Fetch>(said.body) ||
                                 std::holds_alternative<wire::Progress>(said.body);
  if (paused_ && grows_the_journal) return;  // it is said again
  inbound_ = {said.member, message.host};
  feed(said);
  inbound_.reset();
}

void Daemon::welcomed(const std::string& host, const wire::AgentWelcome& welcome) {
  ctl::HostState state;
  state.host = state.name = host;
  state.order = static_cast<std::uint32_t>(std::ranges::find(hosts_, host) - hosts_.begin());
  state.room = static_cast<std::uint32_t>(welcome.cpus + welcome.running.size());
  feed(ctl::job::HostWelcomed{state, welcome.running});
  const bool all = std::ranges::all_of(links_, [](const auto& l) { return l.second.welcome; });
  const ctl::Lifecycle& life = machine_->lifecycle();
  if (all && life.workers().empty() && life.state() == ctl::JobState::kStarting) place();
}

void Daemon::place() {
  std::vector<ctl::PlacedWorker> placed;
  std::map<std::string, std::uint32_t> taken;
  const std::uint32_t servers = config_.spec.server_processes();
  for (std::uint32_t i = 0, host = 0; i < servers + workers_; ++host) {
    const std::string& name = hosts_[host % hosts_.size()];
    const auto* known = machine_->lifecycle().hosts().find(name);
    if (host > 1000) break;
    if (known == nullptr || taken[name] >= known->room) continue;
    ++taken[name];
    const WorkerId id = i < servers ? WorkerId{'s', i} : WorkerId{'w', i - servers};
    placed.push_back({id, name, known->order});
    ++i;
  }
  feed(ctl::lifecycle::WorkersPlaced{std::move(placed)});
}

void Daemon::send(const std::string& host, decltype(ToAgent::body) body) {
  outbox_.push_back({host, {incarnation_, std::move(body)}});
}

}  // namespace antdt::sim
