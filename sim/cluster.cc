#include "sim/cluster.h"

#include <algorithm>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kDaemon = "daemon";

}  // namespace

Cluster::Cluster(World& world, const Options& options) : world_(world), options_(options) {
  shape_job();
  const ctl::JobMachineConfig config = machine_config();
  checks_ = std::make_unique<Checks>(world_, config.ledger, shape_);
  std::vector<std::string> names;
  const auto count = static_cast<std::uint32_t>(world_.rng().between(2, 4));
  const std::uint32_t each =
      (workers_ + static_cast<std::uint32_t>(world_.rng().between(0, 3)) + count - 1) / count;
  slots_ = each * count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("h{}", i);
    names.push_back(name);
    hosts_.push_back(std::make_unique<Host>(
        world_, name, each,
        Host::Outside{[this, name](ToDaemon message) {
                        const std::string what = sim::describe(message);
                        send(
                            name + ">", name, [this, message] { daemon_->receive(message); }, what);
                      },
                      [this](Host& at, Member member, std::uint32_t pid) {
                        placed_ = true;
                        return std::make_shared<Worker>(world_, *this, shape_, options_.sabotage,
                                                        member, pid, at.name());
                      }}));
  }
  daemon_ = std::make_unique<Daemon>(
      world_, config, names, workers_, files_, options_.sabotage,
      Daemon::Outside{
          [this](const std::string& to, ToAgent message) {
            const std::string what = sim::describe(message);
            send(
                ">" + to, to, [this, to, message] { host(to).receive(message); }, what);
          },
          [this](const ctl::JobMachine& machine) { checks_->durable(machine, living(), files_); },
          [this](const ctl::Outcome& outcome) {
            outcome_ = outcome;
            world_.say("the job is {}", outcome.state);
            checks_->ended(*daemon_->machine(), files_, outcome);
          },
          [this](const ctl::JobMachine& machine, std::uint64_t phase) {
            checks_->said_end(machine, phase);
          },
          [this](const SharedFiles::Checkpoint& checkpoint) { checks_->stored(checkpoint); }});
}

void Cluster::shape_job() {
  Rng& rng = world_.rng();
  shape_.train_records = rng.between(100, 300);
  shape_.eval_records = options_.evaluate && rng.chance(0.5) ? rng.between(20, 80) : 0;
  shape_.epochs = options_.epochs;
  shape_.global_batch = static_cast<std::uint32_t>(rng.between(8, 24));
  shape_.sample_time = rng.time(milliseconds(2), milliseconds(40));
  workers_ = static_cast<std::uint32_t>(rng.between(3, 8));
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
  config.key = options_.seed;
  config.hang_after = seconds(10);
  return config;
}

void Cluster::begin() {
  for (auto& h : hosts_) h->boot();
  daemon_->start();
  if (options_.faults.weight() > 0) schedule_fault();
  world_.after(options_.faults_stop, [this] { stop_faults(); });
}

Host& Cluster::host(const std::string& name) {
  return **std::ranges::find(hosts_, name, [](const auto& h) { return h->name(); });
}

std::vector<std::shared_ptr<Worker>> Cluster::living() const {
  std::vector<std::shared_ptr<Worker>> all;
  for (const auto& h : hosts_) {
    for (auto& worker : h->living()) all.push_back(std::move(worker));
  }
  return all;
}

std::string Cluster::describe() const {
  std::string text;
  for (const auto& worker : living()) text += "  " + worker->doing() + "\n";
  const ctl::JobMachine* machine = daemon_->machine();
  if (machine == nullptr) return text + "  the daemon does not run\n";
  const ctl::JobReport report = machine->report();
  text += fmt::format(
      "  {}: generation {}, base {}, phase {}, {} committed, {} outstanding, waits "
      "for {}\n",
      report.state, report.generation, machine->membership().image().base,
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

// -------------------------------------------------------------- what workers need

void Cluster::to_agent(Worker& from, client::Outbound message) {
  Host& at = host(from.host());
  at.from_worker(from, std::move(message));
}

void Cluster::exited(Worker& worker, int code, int signal) {
  world_.say("{}.{} exits with code {} signal {}", worker.member().worker, worker.member().attempt,
             code, signal);
  const ctl::JobMachine* machine = daemon_->machine();
  if (code == 1 && machine != nullptr && machine->lifecycle().is_current(worker.member())) {
    world_.violate("a current member is not refused", worker.doing());
  }
  host(worker.host()).worker_exited(worker, code, signal);
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
    ring =
        std::make_unique<Ring>(world_, members.size(), [this, place](std::size_t a, std::size_t b) {
          return cuts_.empty() || reaches(place(a), place(b));
        });
  }
  return *ring;
}

void Cluster::write_checkpoint(const std::string& directory, const Trained& state) {
  files_.written[directory] = state;
}

const Trained* Cluster::read_checkpoint(const std::string& directory) {
  const auto found = files_.checkpoints.find(directory);
  return found == files_.checkpoints.end() ? nullptr : &found->second.state;
}

}  // namespace antdt::sim
