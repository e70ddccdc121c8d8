#include "sim/cluster.h"

#include <algorithm>

#include "sim/servers/ps_server.h"
#include "sim/servers/ps_worker.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kDaemon = "daemon";

}  // namespace

Cluster::Cluster(World& world, const Options& options)
    : world_(world), options_(options), disk_(world.rng(), options.sabotage != Sabotage::kNoFence) {
  shape_job();
  checks_ = std::make_unique<Checks>(world_, machine_config().ledger, shape_);
  const auto count = static_cast<std::uint32_t>(world_.rng().between(2, 4));
  const std::uint32_t each = (workers_ + shape_.server_processes() +
                              static_cast<std::uint32_t>(world_.rng().between(0, 3)) + count - 1) /
                             count;
  slots_ = each * count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("h{}", i);
    hosts_.push_back(std::make_unique<Host>(
        world_, clock(), name, each,
        Host::Outside{[this, name](ToDaemon message) {
                        const std::string what = world_.tracing() ? sim::describe(message) : "";
                        send(
                            name + ">", name, [this, message] { to_daemons(message); }, what);
                      },
                      [this](Host& at, Member member, std::uint32_t pid) {
                        return make_program(at, member, pid);
                      }}));
  }
  slots_ -= shape_.server_processes();
  other_shape_ = shape_;
  if (options_.sabotage != Sabotage::kLieAboutData) other_shape_.fingerprint = "other";
  if (options_.faults.other_data) other_host_ = fmt::format("h{}", options_.seed % count);
}

// Records that were trained there are not those that the accounts count.
void Cluster::check_data(const Program& who) {
  if (who.host() != other_host_) return;
  world_.violate("other data", fmt::format("{}.{} trains on {}, which has other data",
                                           who.member().worker, who.member().attempt, who.host()));
}

std::shared_ptr<Program> Cluster::make_program(Host& at, Member member, std::uint32_t pid) {
  placed_ = true;
  if (member.worker.role == 's') {
    return std::make_shared<PsServer>(world_, *this, member, pid, at.name(), at.clock());
  }
  const JobShape& shape = at.name() == other_host_ ? other_shape_ : shape_;
  if (shape_.servers > 0) {
    return std::make_shared<PsWorker>(world_, *this, shape, options_.sabotage, member, pid,
                                      at.name(), at.clock());
  }
  return std::make_shared<Worker>(world_, *this, shape, options_.sabotage, member, pid, at.name(),
                                  at.clock());
}

// ------------------------------------------------------------------ job daemons

Daemon::Outside Cluster::outside_of_daemon() {
  return {[this](const std::string& to, ToAgent message) {
            const std::string what = world_.tracing() ? sim::describe(message) : "";
            send(
                ">" + to, to, [this, to, message] { host(to).receive(message); }, what);
          },
          [this](const ctl::JobMachine& machine) { checks_->durable(machine, living(), files_); },
          [this](const ctl::JobMachine& machine, const KeptSkip& skip, bool durable) {
            checks_->skipped(machine, skip, durable);
          },
          [this](const ctl::Outcome& outcome) { daemon_said_end(outcome); },
          [this] { start_daemon_after(world_.rng().time(milliseconds(50), seconds(2))); },
          [this](const ctl::JobMachine& machine, std::uint64_t phase) {
            checks_->said_end(machine, phase);
          },
          [this](const SharedFiles::Checkpoint& checkpoint) {
            checks_->stored(checkpoint);
            if (script.stored) script.stored();
          },
          [this](const ctl::JobMachine& machine, Member member) {
            const auto process = worker(member.worker);
            if (process && process->member() == member) checks_->killed(machine, *process);
          },
          [this](const ctl::JobMachine& machine) {
            return script.daemon_dies && script.daemon_dies(machine);
          }};
}

void Cluster::to_daemons(const ToDaemon& message) {
  if (script.holds_back && script.holds_back(message)) return held_back_.push_back(message);
  for (auto& daemon : daemons_) daemon->receive(message);
}

void Cluster::release_messages() {
  for (ToDaemon& message : std::exchange(held_back_, {})) {
    if (const Daemon* newest = daemon()) message.to = newest->incarnation();
    for (auto& daemon : daemons_) daemon->receive(message);
  }
}

void Cluster::make_daemon() {
  std::vector<std::string> names;
  for (const auto& h : hosts_) names.push_back(h->name());
  daemons_.push_back(std::make_unique<Daemon>(world_, clock(), machine_config(), names, workers_,
                                              files_, disk_, options_.sabotage,
                                              outside_of_daemon()));
  if (daemons_.back()->start()) return;
  daemons_.pop_back();
  start_daemon_after(seconds(1));
}

void Cluster::start_daemon_after(Duration pause) {
  world_.after(pause, [this] {
    if (!over() && daemon() == nullptr) make_daemon();
  });
}

Daemon* Cluster::daemon() const {
  const bool runs = !daemons_.empty() && daemons_.back()->runs();
  return runs ? daemons_.back().get() : nullptr;
}

const ctl::JobMachine* Cluster::machine() const {
  const Daemon* newest = daemon();
  return newest == nullptr ? nullptr : newest->machine();
}

void Cluster::daemon_said_end(const ctl::Outcome& outcome) {
  if (over()) return;
  world_.say("the job is {}", outcome.state);
  if (outcome.state == "stopped" && outcome.code == 75) {
    stopped_ = true;
    return world_.after(world_.rng().time(milliseconds(10), seconds(5)), [this] { resume(); });
  }
  outcome_ = outcome;
  // What is trained until then is another check's; who goes on needs the right files.
  const bool refused = !other_host_.empty() && outcome.exit_class == "data" && outcome.code == 2;
  if (!refused) checks_->ended(*machine(), files_, outcome);
}

void Cluster::resume() {
  world_.say("operator: resume");
  stopped_ = false;
  disk_.resume_requested = true;
  make_daemon();
}

MonoTime Cluster::clock_base() {
  Rng& rng = world_.rng();
  if (!options_.faults.clocks) return world_.now();
  const bool long_ago = rng.chance(0.5);  // that it was started
  return MonoTime(rng.time(milliseconds(1), seconds(long_ago ? 10'000'000 : 10)));
}

HostClock Cluster::clock() {
  const double rate =
      options_.faults.clocks ? 0.98 + 0.0001 * static_cast<double>(world_.rng().below(401)) : 1.0;
  return {world_, clock_base(), rate};
}

// ----------------------------------------------------------------------- the job

void Cluster::shape_job() {
  Rng& rng = world_.rng();
  shape_.train_records = rng.between(100, 300);
  shape_.eval_records = options_.evaluate && rng.chance(0.5) ? rng.between(20, 80) : 0;
  shape_.epochs = options_.epochs;
  shape_.global_batch = static_cast<std::uint32_t>(rng.between(8, 24));
  shape_.sample_time = rng.time(milliseconds(2), milliseconds(40));
  shape_.write_time = options_.write_time;
  shape_.read_time = options_.read_time;
  workers_ = static_cast<std::uint32_t>(rng.between(3, 8));
  if (options_.workers > 0) workers_ = options_.workers;
  shape_servers();
}

// From numbers of its own: the others are the same for every kind of job.
void Cluster::shape_servers() {
  constexpr std::uint64_t kOwn = 0x5e7e75;
  Rng rng(options_.seed ^ kOwn);
  const bool wanted = rng.chance(0.4);
  if (options_.sync == Sync::kAllReduce || (options_.sync == Sync::kAny && !wanted)) return;
  shape_.servers = static_cast<std::uint32_t>(rng.between(1, 4));
  constexpr std::uint64_t kOwnReplicas = 0x2e911ca5;
  const bool weaker = options_.weaker_delivery;
  if (Rng(options_.seed ^ kOwnReplicas).chance(0.4) && !weaker) shape_.replicas = 2;
  // A lost server costs more than a lost worker: some jobs are to get far.
  calm_ = static_cast<std::uint32_t>(rng.between(1, 6));
  const std::uint64_t kind = weaker ? rng.between(2, 3) : rng.below(4);
  shape_.sync = kind < 2    ? SyncStrategy::kPsBsp
                : kind == 2 ? SyncStrategy::kPsSsp
                            : SyncStrategy::kPsAsp;
  if (kind == 2) shape_.staleness = rng.between(1, 4);
  constexpr std::uint64_t kOwnDelivery = 0xde11;
  Rng own(options_.seed ^ kOwnDelivery);
  const std::uint64_t promise = weaker ? own.between(1, 2) : own.below(3);
  if (kind >= 2 && shape_.replicas < 2) shape_.delivery = static_cast<Delivery>(promise);
  if (kind >= 2) return;
  shape_.backups = rng.chance(0.3) ? static_cast<std::uint32_t>(rng.between(1, 2)) : 0;
}

ctl::JobMachineConfig Cluster::machine_config() const {
  Rng rng(options_.seed);
  ctl::JobMachineConfig config;
  config.job = "sim";
  config.spec.epochs = shape_.epochs;
  config.spec.train_records = shape_.train_records;
  config.spec.eval_records = shape_.eval_records;
  config.spec.checkpoint_every = rng.time(milliseconds(300), seconds(5));
  config.spec.stop_grace = seconds(2);
  config.spec.servers = shape_.servers;
  config.spec.server_replicas = shape_.replicas;
  config.spec.sync = shape_.sync;
  config.spec.staleness = shape_.staleness;
  config.spec.delivery = shape_.delivery;
  config.spec.backups = shape_.backups;
  config.ledger.run = kRunDirectory;
  for (const char* cls : {"oom", "program", "signal", "hang", "host", "collective"}) {
    config.spec.budgets[cls] = 1000;
  }
  config.control.rules.global_batch = shape_.global_batch;
  config.control.rules.min = 1;
  config.control.monitor.transient_window = seconds(1);
  config.control.monitor.persistent_window = seconds(5);
  config.ledger.train = {shape_.train_records, rng.between(5, 40), shard_server::Shuffle::kFull, 7};
  config.ledger.eval = {shape_.eval_records, 10, shard_server::Shuffle::kNone, 7};
  config.ledger.retry_limit = 1000000;
  config.secret = crypto::Secret().derive(std::to_string(options_.seed));
  config.hang_after = seconds(10);
  config.data = shape_.data();
  return config;
}

void Cluster::begin() {
  for (auto& h : hosts_) h->boot();
  make_daemon();
  if (options_.faults.weight() > 0) schedule_fault();
  world_.after(options_.faults_stop, [this] { stop_faults(); });
}

Host& Cluster::host(const std::string& name) {
  return **std::ranges::find(hosts_, name, [](const auto& h) { return h->name(); });
}

std::vector<std::shared_ptr<Program>> Cluster::programs() const {
  std::vector<std::shared_ptr<Program>> all;
  for (const auto& h : hosts_) {
    for (auto& program : h->living()) all.push_back(std::move(program));
  }
  return all;
}

std::vector<std::shared_ptr<Worker>> Cluster::living() const {
  std::vector<std::shared_ptr<Worker>> all;
  for (const auto& program : programs()) {
    if (auto worker = std::dynamic_pointer_cast<Worker>(program)) all.push_back(std::move(worker));
  }
  return all;
}

std::shared_ptr<Worker> Cluster::worker(WorkerId id) const {
  std::shared_ptr<Worker> newest;
  for (auto& worker : living()) {
    if (worker->member().worker != id) continue;
    if (!newest || newest->member().attempt < worker->member().attempt) newest = worker;
  }
  return newest;
}

std::string Cluster::describe() const {
  std::string text;
  for (const auto& program : programs()) text += "  " + program->doing() + "\n";
  const ctl::JobMachine* machine = this->machine();
  if (machine == nullptr) return text + "  the daemon does not run\n";
  const ctl::JobReport report = machine->report();
  text += fmt::format(
      "  {}: generation {}, base {}, phase {}, {} committed, {} outstanding, waits "
      "for {}\n",
      report.state, machine->generation(), machine->membership().image().base,
      machine->lifecycle().phase().phase, machine->ledger().committed(),
      machine->ledger().outstanding(), report.waiting_for);
  for (const ctl::WorkerReport& w : report.workers) {
    text += fmt::format("  {}.{} is {} on {}\n", w.worker, w.attempt, w.state, w.host);
  }
  return text;
}

// ------------------------------------------------------------------- the network

bool Cluster::reaches(const std::string& a, const std::string& b) const {
  return !cuts_.contains({std::min(a, b), std::max(a, b)});
}

void Cluster::cut(const std::string& a, const std::string& b, Duration how_long) {
  const std::pair link{std::min(a, b), std::max(a, b)};
  cuts_.insert(link);
  world_.after(how_long, [this, link] { cuts_.erase(link); });
}

void Cluster::send(const std::string& link, const std::string& name, World::Action deliver,
                   const std::string& what) {
  Rng& rng = world_.rng();
  const Faults none;
  const Faults& f = faults_over_ ? none : options_.faults;
  const auto arrive = [this, link, name, deliver, what](MonoTime when) {
    world_.at(when, [this, link, name, deliver, what] {
      if (!reaches(kDaemon, name)) return world_.say("{} cut: {}", link, what);
      world_.say("{} {}", link, what);
      deliver();
    });
  };
  if (f.lose > 0 && rng.chance(f.lose)) return world_.say("{} lost: {}", link, what);
  Duration delay = rng.time(microseconds(100), milliseconds(2));
  if (f.delay > 0 && rng.chance(f.delay)) delay = rng.time(milliseconds(2), seconds(3));
  MonoTime& last = last_delivery_[link];
  const bool overtakes = f.reorder > 0 && rng.chance(f.reorder);
  const MonoTime when = overtakes ? world_.now() + delay : std::max(last, world_.now() + delay);
  last = std::max(last, when);
  arrive(when);
  if (f.duplicate > 0 && rng.chance(f.duplicate)) {
    arrive(when + rng.time(microseconds(100), seconds(1)));
  }
}

// ------------------------------------------------------------ what processes need

void Cluster::to_agent(Program& from, Said message) {
  host(from.host()).from_program(from, std::move(message));
}

void Cluster::exited(Program& program, int code, int signal) {
  const Member member = program.member();
  world_.say("{}.{} exits with code {} signal {}", member.worker, member.attempt, code, signal);
  const ctl::JobMachine* machine = this->machine();
  if (code == 1 && machine != nullptr && machine->lifecycle().is_current(member)) {
    world_.violate("a current member is not refused", program.doing());
  }
  host(program.host()).program_exited(program, code, signal);
}

Ring& Cluster::ring(std::uint64_t key, const std::vector<WorkerId>& members) {
  auto& ring = rings_[key];
  if (!ring) {
    const auto place = [this, members](std::size_t rank) -> std::string {
      for (const auto& worker : living()) {
        if (worker->member().worker == members[rank]) return worker->host();
      }
      return {};
    };
    const auto reach = [this, place](std::size_t a, std::size_t b) {
      return cuts_.empty() || reaches(place(a), place(b));
    };
    ring = std::make_unique<Ring>(world_, members.size(), reach, withheld(members));
  }
  return *ring;
}

Ring::Withheld Cluster::withheld(const std::vector<WorkerId>& members) {
  return {[this, members](std::size_t rank) {
            if (!script.withholds_step) return false;
            const auto at = worker(members[rank]);
            return at && script.withholds_step(*at);
          },
          [this, members](std::size_t rank, std::size_t from) {
            if (!script.withholds_state) return false;
            const auto at = worker(members[rank]);
            return at && script.withholds_state(*at, members[from]);
          }};
}

std::string Cluster::write_checkpoint(const std::string& directory, const Trained& state) {
  files_.written.erase(directory);
  if (files_.full) return directory + ": no room";
  files_.written[directory] = state;
  return {};
}

const Trained* Cluster::read_checkpoint(const std::string& directory) {
  const auto found = files_.checkpoints.find(directory);
  const bool whole = found != files_.checkpoints.end() && !found->second.damaged;
  return whole ? &found->second.state : nullptr;
}

}  // namespace antdt::sim
