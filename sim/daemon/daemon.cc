#include "sim/daemon/daemon.h"

#include <algorithm>
#include <tuple>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The job's failure.host_lost_after.
constexpr Duration kHostLostAfter = seconds(6);
// Snapshots are frequent here, so that incarnations begin with one. The real journal waits for more
// bytes than a simulated run writes.
constexpr std::uint64_t kTurnsToSnapshot = 200;
constexpr Duration kDeafAfter = milliseconds(1500);  // until Sabotage::kDeaf begins

}  // namespace

Daemon::Daemon(World& world, HostClock clock, const Run& run, const Outside& outside)
    : world_(world),
      clock_(clock),
      run_(run),
      outside_(outside),
      process_(world),
      contacts_(kHostLostAfter) {}

bool Daemon::start() {
  const auto incarnation = run_.disk.open();
  if (!incarnation) {
    world_.say("daemon: no room to begin");
    return false;
  }
  incarnation_ = *incarnation;
  low_on_space_ = !run_.disk.restore_ballast();
  ctl::JobMachineConfig config = run_.config;
  config.incarnation = incarnation_;
  const bool again = incarnation_.value > 1;
  if (again && run_.sabotage == Sabotage::kForgetThreshold) config.control.threshold = 1;
  auto opened = ctl::JobMachine::open(std::move(config), solution(), run_.disk.journal());
  if (!opened) {
    world_.violate("the journal can be replayed", opened.error().message);
    return true;
  }
  if (!run_.disk.ledger.empty()) {
    // The data may have grown meanwhile, which an image tells.
    const auto then = shard_server::Ledger::restore(run_.config.ledger, run_.disk.ledger);
    if (!then || then->image() != opened->ledger().image()) {
      world_.violate("a replay comes to the same state", "the ledger differs");
    }
  }
  const wire::Plan& plan = opened->plan();
  const wire::Plan& then = run_.disk.plan;
  if (!run_.disk.ledger.empty() && (plan.version != then.version || plan.rate != then.rate ||
                                    plan.threshold != then.threshold)) {
    world_.violate(
        "a replay comes to the same state",
        fmt::format("plan {} with threshold {} was {} with {}", plan.version,
                    plan.threshold.value_or(0), then.version, then.threshold.value_or(0)));
  }
  machine_.emplace(std::move(*opened));
  skips_ = ctl::job::SkipList(run_.disk.skips);
  if (const Status learnt = skips_.learn(run_.disk.journal()); !learnt) {
    world_.violate("the journal can be replayed", learnt.error().message);
  }
  world_.say("daemon: incarnation {} begins", incarnation_);
  soon([this] { begin(); });
  every(ctl::job::kTick, [this] { tick(); });
  every(ctl::AgentContacts::kBeat, [this] { beat(); });
  every(machine_->control_interval(), [this] { feed(ctl::job::ControlTickPassed{}); });
  return true;
}

std::unique_ptr<ctl::Solution> Daemon::solution() const {
  if (run_.visit_every == 0) return *ctl::make_solution("nd");
  return *ctl::make_solution("skew-scout", {.every = run_.visit_every});
}

void Daemon::begin() {
  if (!machine_->known()) {
    feed(ctl::job::JobCreated{});
  } else if (run_.disk.resume_requested) {
    resumes_ = true;
    feed(ctl::job::OperatorAsked{"resume", "a test"});
    feed(ctl::job::ResumeOrdered{});
  } else {
    feed(ctl::job::IncarnationRecovered{});
  }
  for (const std::string& host : run_.hosts) {
    contacts_.add(host, clock_.now());
    outputs_.send(host, wire::Attach{incarnation_});
  }
}

void Daemon::crash() {
  if (!runs()) return;
  // The crash came during the commit: the turn may be on the disk or not, and so may the snapshot.
  if (turn_ >= Turn::kCommits && world_.rng().chance(0.5))
    std::ignore = commit(world_.rng().chance(0.5));
  if (run_.sabotage == Sabotage::kLyingDisk) {
    run_.disk.forget();
  }
  end("crashes");
}

void Daemon::end(const char* why) {
  world_.say("daemon: incarnation {} {}", incarnation_, why);
  process_.end();
  machine_.reset();
  inbox_.clear();
}

void Daemon::freeze(bool with_its_clock) {
  process_.freeze();
  if (with_its_clock) clock_.stand_still();
}

void Daemon::thaw() {
  if (turn_ != Turn::kStandsStill) clock_.go_on();
  process_.thaw();
}

// ----------------------------------------------------------------------- turns

void Daemon::soon(Job job) {
  inbox_.push_back(std::move(job));
  if (turn_ != Turn::kNone) return;
  turn_ = Turn::kRuns;
  process_.after(microseconds(50), [this] { turn(); });
}

void Daemon::turn() {
  for (const Job& job : std::exchange(inbox_, {})) job();
  declare_skips();
  if (std::string skips = skips_.record_if_changed(); !skips.empty()) {
    outputs_.pending.push_back({std::string(ctl::job::kSkipRecord), std::move(skips)});
  }
  if (const auto image = machine_->image_if_changed()) {
    outputs_.pending.push_back({std::string(ctl::kImageRecord), *image});
  }
  turn_ = Turn::kCommits;
  if (run_.sabotage == Sabotage::kForgetTurn) outputs_.release();
  commit_soon();
}

void Daemon::commit_soon() {
  const bool stalls = world_.rng().chance(0.01);
  const Duration sync = outputs_.pending.empty()
                            ? Duration{}
                            : world_.rng().time(microseconds(100), milliseconds(stalls ? 200 : 1));
  const Disk::Standstill& still = run_.disk.standstill();
  if (outputs_.pending.empty() || still.of != incarnation_ || world_.now() >= still.until) {
    return process_.after(sync, [this] { committed(commit()); });
  }
  turn_ = Turn::kStandsStill;
  clock_.stand_still();
  std::optional<Disk::Wrote> wrote;
  if (still.carries_out) wrote = commit();
  process_.after(still.until - world_.now() + sync, [this, wrote]() mutable {
    clock_.go_on();
    if (wrote == Disk::Wrote::kDone) wrote = run_.disk.confirm(incarnation_);
    committed(wrote ? *wrote : commit());
  });
  give_signs_of_life();
}

// As the deputy of the real daemon does while a commit lasts.
void Daemon::give_signs_of_life() {
  if (turn_ != Turn::kStandsStill) return;
  for (const std::string& host : run_.hosts) {
    if (contacts_.welcome(host)) outside_.to_agent(host, {incarnation_, wire::Heartbeat{}});
  }
  process_.after(milliseconds(500), [this] { give_signs_of_life(); });
}

void Daemon::committed(Disk::Wrote wrote) {
  if (wrote != Disk::Wrote::kDone) {
    end(wrote == Disk::Wrote::kNoRoom ? "has no room for its journal" : "was taken over");
    return outside_.died();
  }
  turn_ = Turn::kRuns;
  if (outside_.dies_before_sending && outside_.dies_before_sending(*machine_)) {
    end("crashes before it says what it decided");
    return outside_.died();
  }
  keep_skips();
  pause_if_disk_is_full();
  if (std::exchange(resumes_, false)) run_.disk.resume_requested = false;
  outputs_.release();
  if (const auto& outcome = outputs_.outcome()) {
    outside_.ended(*outcome);
    return end("is done");
  }
  turn_ = Turn::kNone;
  if (!inbox_.empty()) soon([] {});
}

Disk::Wrote Daemon::commit(bool with_snapshot) {
  const std::vector<shard_server::JournalEntry> turn = std::exchange(outputs_.pending, {});
  if (turn.empty()) return Disk::Wrote::kDone;
  const bool was_there = run_.disk.has_ballast();
  Disk::Wrote wrote = run_.disk.append(incarnation_, turn);
  if (wrote != Disk::Wrote::kDone) return wrote;
  if (++run_.disk.turns % kTurnsToSnapshot == 0 && with_snapshot) {
    std::vector<shard_server::JournalEntry> sections = machine_->snapshot();
    if (std::string skips = skips_.record(); !skips.empty()) {
      sections.push_back({std::string(ctl::job::kSkipRecord), std::move(skips)});
    }
    wrote = run_.disk.snapshot(incarnation_, std::move(sections));
  }
  low_on_space_ = low_on_space_ || (was_there && !run_.disk.has_ballast());
  if (run_.sabotage == Sabotage::kLyingDisk && run_.disk.turns % 20 == 0)
    run_.disk.older = run_.disk.journal();
  run_.disk.ledger = machine_->ledger().image();
  run_.disk.plan = machine_->plan();
  outside_.durable(*machine_);
  return wrote;
}

void Daemon::pause_if_disk_is_full() {
  if (!low_on_space_ || !pause_.begin(clock_.now())) return;
  world_.say("daemon: pauses, its disk is full");
  feed(ctl::job::PauseChanged{true});
}

void Daemon::go_on_if_there_is_room() {
  if (!pause_.look(clock_.now())) return;
  if (run_.sabotage == Sabotage::kStayPaused || !run_.disk.restore_ballast()) return;
  world_.say("daemon: goes on, there is room");
  low_on_space_ = false;
  pause_.end();
  feed(ctl::job::PauseChanged{false});
}

// ----------------------------------------------------------------------- skips

void Daemon::skip(std::uint64_t from, std::uint64_t to) {
  if (!runs()) return;
  soon([this, from, to] {
    const shard_server::Phase& open = machine_->ledger().phase();
    const bool trains = open.number > 0 && open.kind == shard_server::PhaseKind::kTrain;
    if (!trains || !machine_->check(wire::SkipRecords{from, to, "a test", "a test"})) return;
    skips_.add(open.epoch, {from, to, "a test", "a test"});
    declare_skips();
    if (run_.sabotage == Sabotage::kSkipUnasked) {
      feed(ctl::job::SkipOrdered{{0, machine_->ledger().records(), "a test", "a test"}});
    }
  });
}

// The file is written after the skips are durable, so that only the newest incarnation writes it,
// and before anybody is told.
void Daemon::keep_skips() {
  if (!skips_.take_changed()) return;
  run_.disk.skips = skips_.all();
  for (const ctl::job::Skip& skip : std::exchange(declared_, {}))
    outside_.skipped(*machine_, skip, true);
}

// Skips are declared again in every lineage.
void Daemon::declare_skips() {
  const auto due = skips_.take_due(machine_->ledger().phase(), machine_->membership().lineage());
  for (const ctl::job::Skip& skip : due) {
    if (run_.sabotage != Sabotage::kForgetSkip) feed(ctl::job::SkipOrdered{skip.order});
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
  outputs_.perform(outputs);
}

// ------------------------------------------------------------------------ time

void Daemon::every(Duration period, Job job) {
  process_.after(clock_.real(period), [this, period, job] {
    soon(job);
    every(period, job);
  });
}

void Daemon::tick() {
  outputs_.repeat_requests();
  go_on_if_there_is_room();
  for (const std::string& host : contacts_.silent(clock_.now())) {
    feed(ctl::job::HostFellSilent{host});
  }
  feed(ctl::job::TimePassed{});
}

void Daemon::beat() {
  for (const std::string& host : run_.hosts) {
    if (contacts_.welcome(host)) {
      outputs_.send(host, wire::Heartbeat{});
    } else {
      outputs_.send(host, wire::Attach{incarnation_});
    }
    if (!contacts_.look(host, clock_.now())) continue;
    world_.say("daemon: {} is lost", host);
    feed(ctl::lifecycle::HostLost{host, "silent"});
  }
}

// -------------------------------------------------------------------- messages

void Daemon::receive(ToDaemon message) {
  if (!runs() || message.to != incarnation_) return;
  if (run_.sabotage == Sabotage::kDeaf && world_.elapsed() > kDeafAfter) return;
  soon([this, message = std::move(message)] { hear(message); });
}

void Daemon::hear(const ToDaemon& message) {
  const std::string& host = message.host;
  const MonoTime now = clock_.now();
  if (const auto* welcome = std::get_if<wire::AgentWelcome>(&message.body)) {
    if (contacts_.welcomed(host, now)) welcomed(host, *welcome);
    return;
  }
  if (std::holds_alternative<NotAttached>(message.body)) {
    std::ignore = contacts_.refused(host, wire::RefusalCode::kUnknown, now);
    return;
  }
  contacts_.heard(host, now);
  if (const auto* started = std::get_if<Started>(&message.body)) {
    feed(ctl::lifecycle::WorkerStarted{started->member, started->pid});
  } else if (const auto* exited = std::get_if<Exited>(&message.body)) {
    outputs_.send(host, ExitSeen{exited->member});
    feed(ctl::lifecycle::WorkerExited{exited->member, exited->exit});
  } else if (const auto* refused = std::get_if<StartRefused>(&message.body)) {
    feed(ctl::lifecycle::WorkerStartRefused{refused->member, refused->reason});
  } else if (const auto* said = std::get_if<ctl::job::WorkerSaid>(&message.body)) {
    hear_worker(message, *said);
  }
}

void Daemon::hear_worker(const ToDaemon& message, const ctl::job::WorkerSaid& said) {
  const bool ignored =
      std::visit([this]<class Body>(const Body&) { return pause_.ignores<Body>(); }, said.body);
  if (ignored) return;
  outputs_.handling(said.member, message.host);
  feed(said);
  outputs_.handled();
}

void Daemon::welcomed(const std::string& host, const wire::AgentWelcome& welcome) {
  ctl::HostState state;
  state.host = state.name = host;
  state.order =
      static_cast<std::uint32_t>(std::ranges::find(run_.hosts, host) - run_.hosts.begin());
  state.room = static_cast<std::uint32_t>(welcome.cpus + welcome.running.size());
  feed(ctl::job::HostWelcomed{state, welcome.running});
  const ctl::Lifecycle& life = machine_->lifecycle();
  if (contacts_.all_welcome() && life.workers().empty() && life.state() == ctl::JobState::kStarting)
    place();
}

void Daemon::place() {
  std::vector<ctl::PlacedWorker> placed;
  std::map<std::string, std::uint32_t> taken;
  const std::uint32_t servers = run_.config.spec.server_processes();
  for (std::uint32_t i = 0, host = 0; i < servers + run_.workers; ++host) {
    const std::string& name = run_.hosts[host % run_.hosts.size()];
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

}  // namespace antdt::sim
