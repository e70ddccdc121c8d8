// What goes wrong, and when.
#include <algorithm>
#include <csignal>

#include "sim/cluster.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

bool set_faults(std::string_view name, Faults& f) {
  f = {};
  const bool all = name == "all";
  if (all || name == "workers") f.worker_kill = 6, f.worker_hang = 2, f.worker_slow = 2;
  if (all || name == "daemon") f.daemon_crash = 4, f.two_daemons = 2;
  if (all || name == "agents") {
    f.agent_crash = 3, f.host_crash = 2, f.partition = 3, f.blackout = 1, f.suspend = 2;
    f.clocks = true;
  }
  if (all || name == "disks") f.journal_full = 1, f.files_full = 1, f.spoil = 1;
  if (all || name == "operators") f.operator_wish = 3;
  if (all || name == "messages")
    f.lose = 0.02, f.duplicate = 0.02, f.reorder = 0.02, f.delay = 0.01;
  // With workers that die, so that some come to that host in the middle of training.
  if (name == "data") f.other_data = true, f.worker_kill = 6, f.host_crash = 2;
  return all || f.weight() > 0 || f.lose > 0 || name == "none";
}

void Cluster::schedule_fault() {
  // Often close together: what is hard happens while something else heals.
  const Duration pause = world_.rng().chance(0.3)
                             ? world_.rng().time({}, milliseconds(100))
                             : world_.rng().time(milliseconds(100), seconds(3));
  world_.after(pause * calm_, [this] {
    if (faults_over_ || ended()) return;
    // A host that is not there when the job is placed ends it, and should.
    if (placed_) fault();
    schedule_fault();
  });
}

void Cluster::fault() {
  const Faults& f = options_.faults;
  std::uint64_t which = world_.rng().below(f.weight());
  const auto is = [&](std::uint32_t weight) {
    if (which < weight) return true;
    which -= weight;
    return false;
  };
  if (is(f.worker_kill)) return kill_workers();
  if (is(f.worker_hang)) return hang_a_worker();
  if (is(f.worker_slow)) return slow_a_worker();
  if (is(f.daemon_crash)) return crash_the_daemon();
  if (is(f.agent_crash)) return crash_an_agent();
  if (is(f.host_crash)) return crash_a_host();
  if (is(f.partition)) return cut_a_link();
  if (is(f.blackout)) return black_out();
  if (is(f.suspend)) return suspend_a_machine();
  if (is(f.two_daemons)) return start_a_second_daemon();
  if (is(f.journal_full)) return fill_the_journals_disk();
  if (is(f.files_full)) return fill_the_checkpoints_disk();
  if (is(f.spoil)) return spoil_a_checkpoint();
  wish();
}

// Of processes that run; one on a machine that stands still changes nothing.
std::shared_ptr<Program> Cluster::some_program(std::string_view roles) {
  auto all = programs();
  std::erase_if(all, [&](const auto& p) {
    return host(p->host()).suspended() || roles.find(p->member().worker.role) == roles.npos;
  });
  return all.empty() ? nullptr : world_.rng().pick(all);
}

void Cluster::kill_workers() {
  const bool all = world_.rng().chance(0.05);
  std::size_t victims = all ? programs().size() : world_.rng().chance(0.2) ? 2 : 1;
  for (; victims > 0; --victims) {
    const auto victim = some_program();
    if (!victim) return;
    // Between what it says to the one and to the other: staging, a decision.
    if (shape_.servers > 0 && world_.rng().chance(0.4)) {
      victim->kill_after_sending(static_cast<std::uint32_t>(world_.rng().between(1, 20)));
      continue;
    }
    world_.say("fault: {}.{} is killed", victim->member().worker, victim->member().attempt);
    victim->kill(world_.rng().chance(0.8) ? SIGKILL : SIGSEGV);
  }
}

void Cluster::hang_a_worker() {
  const auto victim = some_program();
  if (!victim) return;
  world_.say("fault: {}.{} is stopped", victim->member().worker, victim->member().attempt);
  victim->stop();
  if (world_.rng().chance(0.3)) return;  // until somebody ends it
  world_.after(world_.rng().time(milliseconds(100), seconds(20)), [this, victim] {
    world_.say("{}.{} goes on", victim->member().worker, victim->member().attempt);
    victim->go_on();
  });
}

void Cluster::slow_a_worker() {
  const auto victim = some_program();
  if (!victim) return;
  victim->set_slowdown(static_cast<double>(world_.rng().between(1, 10)));
  world_.after(world_.rng().time(seconds(1), seconds(10)), [victim] { victim->set_slowdown(1); });
}

void Cluster::crash_the_daemon() {
  if (Daemon* daemon = this->daemon()) daemon->crash();
  start_daemon_after(world_.rng().time(milliseconds(50), seconds(5)));
}

// The last one stands still, or nobody has told it: what it decides and says
// from now on must be nothing.
void Cluster::start_a_second_daemon() {
  Daemon* const last = daemon();
  if (last == nullptr) return;
  world_.say("fault: incarnation {} is succeeded while it runs", last->incarnation());
  const bool stopped = world_.rng().chance(0.7);
  if (stopped) {
    last->freeze(world_.rng().chance(0.5));
    world_.after(world_.rng().time(milliseconds(1), seconds(10)), [this, last] {
      world_.say("incarnation {} goes on", last->incarnation());
      last->thaw();
    });
  }
  world_.after(world_.rng().time({}, seconds(1)), [this] {
    if (!over()) make_daemon();
  });
}

void Cluster::crash_an_agent() {
  Host& victim = *world_.rng().pick(hosts_);
  if (victim.suspended()) return;
  world_.say("fault: the agent of {} crashes", victim.name());
  victim.crash_agent();
  world_.after(world_.rng().time(milliseconds(50), seconds(12)),
               [&victim] { victim.start_agent(); });
}

void Cluster::crash_a_host() {
  Host& victim = *world_.rng().pick(hosts_);
  world_.say("fault: {} loses its power", victim.name());
  victim.lose_power();
  const bool empty = world_.rng().chance(0.3);
  world_.after(world_.rng().time(milliseconds(500), seconds(20)),
               [this, &victim, empty] { victim.power_on(empty, clock_base()); });
}

void Cluster::black_out() {
  world_.say("fault: every machine loses its power");
  if (Daemon* daemon = this->daemon()) daemon->crash();
  for (auto& h : hosts_) {
    h->lose_power();
    world_.after(world_.rng().time(milliseconds(500), seconds(10)),
                 [this, &h = *h] { h.power_on(false, clock_base()); });
  }
  start_daemon_after(world_.rng().time(seconds(1), seconds(10)));
}

void Cluster::suspend_a_machine() {
  const Duration how_long = world_.rng().time(milliseconds(10), seconds(20));
  Daemon* const daemon = this->daemon();
  if (world_.rng().chance(0.3) && daemon != nullptr && !daemon->stands_still()) {
    world_.say("fault: the daemon's machine is suspended");
    daemon->freeze(true);
    return world_.after(how_long, [daemon] { daemon->thaw(); });
  }
  Host& victim = *world_.rng().pick(hosts_);
  world_.say("fault: {} is suspended", victim.name());
  victim.suspend();
  world_.after(how_long, [this, &victim] {
    world_.say("{} wakes up", victim.name());
    victim.wake();
  });
}

void Cluster::fill_the_journals_disk() {
  world_.say("fault: the disk of the journal is full");
  disk_.set_full(true);
  world_.after(world_.rng().time(milliseconds(100), seconds(15)), [this] {
    world_.say("there is room for the journal");
    disk_.set_full(false);
  });
}

void Cluster::fill_the_checkpoints_disk() {
  world_.say("fault: the disk of the checkpoints is full");
  files_.full = true;
  world_.after(world_.rng().time(milliseconds(100), seconds(15)), [this] {
    world_.say("there is room for checkpoints");
    files_.full = false;
  });
}

// Not the one that training begins from at this moment: what is read after it
// was checked is what was checked. And not the trained model.
void Cluster::spoil_a_checkpoint() {
  const ctl::JobMachine* machine = this->machine();
  if (files_.checkpoints.empty() || machine == nullptr) return;
  auto& [name, newest] = *files_.checkpoints.rbegin();
  const ctl::JobState state = machine->lifecycle().state();
  const bool in_use = shape_.servers > 0 ? machine->server_group().image().restore == name
                                         : machine->membership().image().base == Generation{};
  if (in_use || state == ctl::JobState::kFinishing || newest.damaged) return;
  world_.say("fault: checkpoint {} is damaged", name);
  newest.damaged = true;
}

void Cluster::cut_a_link() {
  const std::string a = world_.rng().pick(hosts_)->name();
  const std::string b = world_.rng().chance(0.5) ? "daemon" : world_.rng().pick(hosts_)->name();
  if (a == b) return;
  world_.say("fault: {} and {} do not reach each other", a, b);
  cut(a, b, world_.rng().time(milliseconds(50), seconds(12)));
}

void Cluster::wish() {
  Daemon* const daemon = this->daemon();
  if (daemon == nullptr) return;
  // More of them often find no room, and fewer make it.
  if (shape_.servers > 0 && world_.rng().chance(0.4)) {
    const std::uint32_t now = daemon->machine()->lifecycle().servers();
    const std::uint64_t least = now > 1 ? now - 1 : 1;
    const auto count = static_cast<std::uint32_t>(world_.rng().between(least, now + 1));
    world_.say("operator: {} servers", count);
    return daemon->feed_soon(ctl::lifecycle::ServerCountRequested{count, "a test"});
  }
  const double which = static_cast<double>(world_.rng().below(100));
  if (which < 40) {
    // Servers are few, and moving one is a matter of its own.
    const bool server = shape_.servers > 0 && world_.rng().chance(0.4);
    const auto someone = some_program(server ? "s" : "sw");
    if (!someone) return;
    const std::string target = to_string(someone->member().worker);
    world_.say("operator: evict {}", target);
    return daemon->feed_soon(ctl::lifecycle::EvictionRequested{target, "a test", seconds(2)});
  }
  if (which < 75) {
    const auto count =
        static_cast<std::uint32_t>(world_.rng().between(2, std::min(slots_, shape_.global_batch)));
    world_.say("operator: resize to {}", count);
    return daemon->feed_soon(ctl::lifecycle::WorkerCountRequested{count, "a test"});
  }
  if (which < 88) {
    const std::uint64_t from = world_.rng().below(shape_.train_records);
    const std::uint64_t to = std::min(from + world_.rng().between(1, 12), shape_.train_records);
    world_.say("operator: skip {}:{}", from, to);
    return daemon->skip(from, to);
  }
  world_.say("operator: stop");
  daemon->feed_soon(ctl::lifecycle::StopRequested{"a test", world_.rng().time({}, seconds(3))});
}

// From here on everything that can work does. A stopped process stays stopped:
// that it is found and replaced is part of what must happen.
void Cluster::stop_faults() {
  faults_over_ = true;
  checks_->faults_are_over();
  world_.say("no more faults");
  cuts_.clear();
  disk_.set_full(false);
  files_.full = false;
  for (auto& h : hosts_) {
    h->wake();
    h->power_on(false, clock_base());
    h->start_agent();
  }
  for (const auto& program : programs()) program->set_slowdown(1);
  start_daemon_after({});
}

}  // namespace antdt::sim
