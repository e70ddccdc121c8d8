#include "sim/fault_plan.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

#include "ctl/job/observers/pin_watch.h"

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
  if (all || name == "disks") f.journal_full = 1, f.files_full = 1, f.files_away = 1, f.spoil = 1;
  if (all || name == "store") f.store_still = 2;
  if (all || name == "operators") f.operator_wish = 3;
  if (all || name == "messages")
    f.lose = 0.02, f.duplicate = 0.02, f.reorder = 0.02, f.delay = 0.01;
  if (all || name == "programs") {
    f.program_skips = f.program_ends = true;
    f.worker_kill = 6;
  }
  // Workers die as well, so that some are started on that host in the middle of training.
  if (name == "data") f.other_data = true, f.worker_kill = 6, f.host_crash = 2;
  return all || f.weight() > 0 || f.lose > 0 || name == "none";
}

FaultPlan::FaultPlan(World& world, const Options& options, const DrawnJob& job, Targets targets)
    : world_(world),
      rng_(world.rng()),
      chances_(options.faults),
      shape_(job.shape),
      calm_(job.calm),
      slots_(targets.hosts.slots()),
      on_(targets) {}

void FaultPlan::begin() {
  if (chances_.weight() > 0) schedule();
}

void FaultPlan::schedule() {
  // Faults often come close together: the hard cases are faults during healing.
  const Duration pause = rng_.chance(0.3) ? rng_.time({}, milliseconds(100))
                                          : rng_.time(milliseconds(100), seconds(3));
  world_.after(pause * calm_, [this] {
    if (over_ || on_.daemons.ended()) return;
    if (placed_) strike();
    schedule();
  });
}

void FaultPlan::strike() {
  const Faults& f = chances_;
  std::uint64_t which = rng_.below(f.weight());
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
  if (is(f.store_still)) return stand_the_store_still();
  if (is(f.files_full)) return fill_the_checkpoints_disk();
  if (is(f.files_away)) return take_the_checkpoints_away();
  if (is(f.spoil)) return spoil_a_checkpoint();
  wish();
}

// Chooses only among processes that run: a fault on a suspended machine changes nothing.
std::shared_ptr<Program> FaultPlan::some_program(std::string_view roles) {
  auto all = on_.hosts.programs();
  std::erase_if(all, [&](const auto& p) {
    return on_.hosts.at(p->host()).suspended() || roles.find(p->member().worker.role) == roles.npos;
  });
  return all.empty() ? nullptr : rng_.pick(all);
}

void FaultPlan::kill_workers() {
  if (!shape_.domains.empty() && rng_.chance(0.3)) return kill_a_domain();
  const bool all = rng_.chance(0.05);
  std::size_t victims = all ? on_.hosts.programs().size() : rng_.chance(0.2) ? 2 : 1;
  for (; victims > 0; --victims) {
    const auto victim = some_program();
    if (!victim) return;
    // The server dies between its messages to two peers, while it stages a push or announces a
    // decision.
    if (shape_.servers > 0 && rng_.chance(0.4)) {
      victim->kill_after_sending(static_cast<std::uint32_t>(rng_.between(1, 20)));
      continue;
    }
    world_.say("fault: {}.{} is killed", victim->member().worker, victim->member().attempt);
    victim->kill(rng_.chance(0.8) ? SIGKILL : SIGSEGV);
  }
}

void FaultPlan::kill_a_domain() {
  const Domains domains(shape_.domains);
  const std::string victim = shape_.domains[rng_.below(shape_.domains.size())].name;
  world_.say("fault: all workers of domain {} are killed", victim);
  kill_all([&](const Program& program) {
    return domains.of(program.member().worker, program.host()) == victim;
  });
}

void FaultPlan::kill_all(const std::function<bool(const Program&)>& victims) {
  for (const auto& program : on_.hosts.programs()) {
    const bool runs = !on_.hosts.at(program->host()).suspended();
    if (runs && victims(*program)) program->kill(SIGKILL);
  }
}

// The hosts on which its workers run do not reach the others.
void FaultPlan::cut_off_a_domain() {
  const Domains domains(shape_.domains);
  const std::string victim = shape_.domains[rng_.below(shape_.domains.size())].name;
  std::set<std::string> within;
  for (const auto& program : on_.hosts.programs()) {
    const bool here = domains.of(program->member().worker, program->host()) == victim;
    if (here) within.insert(program->host());
  }
  world_.say("fault: domain {} is cut off", victim);
  const Duration how_long = rng_.time(milliseconds(50), seconds(12));
  for (const std::string& inside : within) {
    for (const std::string& outside : on_.hosts.names()) {
      if (!within.contains(outside)) on_.network.cut(inside, outside, how_long);
    }
  }
}

void FaultPlan::hang_a_worker() {
  const auto victim = some_program();
  if (!victim) return;
  world_.say("fault: {}.{} is stopped", victim->member().worker, victim->member().attempt);
  victim->stop();
  if (rng_.chance(0.3)) return;  // the process stays stopped until somebody ends it
  world_.after(rng_.time(milliseconds(100), seconds(20)), [this, victim] {
    world_.say("{}.{} goes on", victim->member().worker, victim->member().attempt);
    victim->go_on();
  });
}

void FaultPlan::slow_a_worker() {
  const auto victim = some_program();
  if (!victim) return;
  victim->set_slowdown(static_cast<double>(rng_.between(1, 10)));
  world_.after(rng_.time(seconds(1), seconds(10)), [victim] { victim->set_slowdown(1); });
}

void FaultPlan::crash_the_daemon() {
  if (Daemon* daemon = on_.daemons.newest()) daemon->crash();
  on_.daemons.start_after(rng_.time(milliseconds(50), seconds(5)));
}

// The previous daemon stands still, or was not told of its successor. What it decides and sends
// from now on must have no effect.
void FaultPlan::start_a_second_daemon() {
  Daemon* const last = on_.daemons.newest();
  if (last == nullptr) return;
  world_.say("fault: incarnation {} is succeeded while it runs", last->incarnation());
  const bool stopped = rng_.chance(0.7);
  if (stopped) {
    last->freeze(rng_.chance(0.5));
    world_.after(rng_.time(milliseconds(1), seconds(10)), [this, last] {
      world_.say("incarnation {} goes on", last->incarnation());
      last->thaw();
    });
  }
  world_.after(rng_.time({}, seconds(1)), [this] {
    if (!on_.daemons.over()) on_.daemons.make();
  });
}

void FaultPlan::crash_an_agent() {
  Host& victim = *rng_.pick(on_.hosts.all());
  if (victim.suspended()) return;
  world_.say("fault: the agent of {} crashes", victim.name());
  victim.crash_agent();
  world_.after(rng_.time(milliseconds(50), seconds(12)), [&victim] { victim.start_agent(); });
}

void FaultPlan::crash_a_host() {
  Host& victim = *rng_.pick(on_.hosts.all());
  world_.say("fault: {} loses its power", victim.name());
  victim.lose_power();
  const bool empty = rng_.chance(0.3);
  world_.after(rng_.time(milliseconds(500), seconds(20)),
               [this, &victim, empty] { victim.power_on(empty, on_.clocks.base()); });
}

void FaultPlan::black_out() {
  world_.say("fault: every machine loses its power");
  if (Daemon* daemon = on_.daemons.newest()) daemon->crash();
  for (auto& h : on_.hosts.all()) {
    h->lose_power();
    world_.after(rng_.time(milliseconds(500), seconds(10)),
                 [this, &h = *h] { h.power_on(false, on_.clocks.base()); });
  }
  on_.daemons.start_after(rng_.time(seconds(1), seconds(10)));
}

void FaultPlan::suspend_a_machine() {
  const Duration how_long = rng_.time(milliseconds(10), seconds(20));
  Daemon* const daemon = on_.daemons.newest();
  if (rng_.chance(0.3) && daemon != nullptr && !daemon->stands_still()) {
    world_.say("fault: the daemon's machine is suspended");
    daemon->freeze(true);
    return world_.after(how_long, [daemon] { daemon->thaw(); });
  }
  Host& victim = *rng_.pick(on_.hosts.all());
  world_.say("fault: {} is suspended", victim.name());
  victim.suspend();
  world_.after(how_long, [this, &victim] {
    world_.say("{} wakes up", victim.name());
    victim.wake();
  });
}

// The store of the journal does not answer the present daemon. What it asked for may have been
// carried out all the same, and its lease may end meanwhile, so that a daemon which stood by
// begins.
void FaultPlan::stand_the_store_still() {
  const Daemon* const daemon = on_.daemons.newest();
  if (daemon == nullptr) return;
  const Duration how_long = rng_.time(milliseconds(100), seconds(20));
  const bool carries_out = rng_.chance(0.5);
  world_.say("fault: the store does not answer incarnation {}{}", daemon->incarnation(),
             carries_out ? ", and does what it is asked" : "");
  on_.disk.stand_still({daemon->incarnation(), world_.now() + how_long, carries_out});
  if (rng_.chance(0.5)) return;
  world_.after(rng_.time(seconds(1), seconds(10)), [this, of = daemon->incarnation()] {
    const Daemon* const now = on_.daemons.newest();
    if (now == nullptr || now->incarnation() != of || on_.daemons.over()) return;
    world_.say("the lease of incarnation {} ends", of);
    on_.daemons.make();
  });
}

void FaultPlan::fill_the_journals_disk() {
  world_.say("fault: the disk of the journal is full");
  on_.disk.set_full(true);
  world_.after(rng_.time(milliseconds(100), seconds(15)), [this] {
    world_.say("there is room for the journal");
    on_.disk.set_full(false);
  });
}

void FaultPlan::fill_the_checkpoints_disk() {
  world_.say("fault: the disk of the checkpoints is full");
  on_.files.full = true;
  world_.after(rng_.time(milliseconds(100), seconds(15)), [this] {
    world_.say("there is room for checkpoints");
    on_.files.full = false;
  });
}

// Often there is nobody left who holds the training state, so that somebody has to read.
void FaultPlan::take_the_checkpoints_away() {
  world_.say("fault: workers and servers cannot read checkpoints");
  on_.files.away = true;
  if (rng_.chance(0.5)) kill_all([](const Program&) { return true; });
  world_.after(rng_.time(milliseconds(100), seconds(60)), [this] {
    world_.say("they can read checkpoints again");
    on_.files.away = false;
  });
}

// Spares the checkpoint from which training begins at this moment, because its content is not
// checked again when it is read, and the trained model.
void FaultPlan::spoil_a_checkpoint() {
  const ctl::JobMachine* machine = on_.daemons.machine();
  if (on_.files.checkpoints.empty() || machine == nullptr) return;
  auto& [name, newest] = *on_.files.checkpoints.rbegin();
  const ctl::JobState state = machine->lifecycle().state();
  const bool in_use = shape_.servers > 0 ? machine->server_group().image().restore == name
                                         : machine->membership().image().base == Generation{};
  // It may have been found to be whole, and be read next.
  const bool was_found = on_.daemons.newest()->is_busy();
  if (in_use || was_found || state == ctl::JobState::kFinishing || newest.damaged) return;
  world_.say("fault: checkpoint {} is damaged", name);
  newest.damaged = true;
}

void FaultPlan::cut_a_link() {
  if (!shape_.domains.empty() && rng_.chance(0.4)) return cut_off_a_domain();
  const std::string a = rng_.pick(on_.hosts.all())->name();
  const std::string b = rng_.chance(0.5) ? Network::kDaemon : rng_.pick(on_.hosts.all())->name();
  if (a == b) return;
  world_.say("fault: {} and {} do not reach each other", a, b);
  on_.network.cut(a, b, rng_.time(milliseconds(50), seconds(12)));
}

void FaultPlan::wish() {
  Daemon* const daemon = on_.daemons.newest();
  if (daemon == nullptr) return;
  // A request for more servers often finds no host with room, and a request for fewer makes room.
  if (shape_.servers > 0 && rng_.chance(0.4)) {
    const std::uint32_t now = daemon->machine()->lifecycle().servers();
    const std::uint64_t least = now > 1 ? now - 1 : 1;
    const auto count = static_cast<std::uint32_t>(rng_.between(least, now + 1));
    world_.say("operator: {} servers", count);
    return daemon->feed_soon(ctl::lifecycle::ServerCountRequested{count, "a test"});
  }
  const double which = static_cast<double>(rng_.below(100));
  if (which < 40) {
    // There are few servers, and moving one is a case of its own.
    const bool server = shape_.servers > 0 && rng_.chance(0.4);
    const auto someone = some_program(server ? "s" : "sw");
    if (!someone) return;
    const std::string target = to_string(someone->member().worker);
    world_.say("operator: evict {}", target);
    return daemon->feed_soon(ctl::lifecycle::EvictionRequested{target, "a test", seconds(2)});
  }
  if (which < 75) {
    const auto count = static_cast<std::uint32_t>(
        rng_.between(2, std::min(slots_ - shape_.server_processes(), shape_.global_batch)));
    world_.say("operator: resize to {}", count);
    return daemon->feed_soon(ctl::lifecycle::WorkerCountRequested{count, "a test"});
  }
  if (which < 88) {
    const std::uint64_t from = rng_.below(shape_.train_records);
    const std::uint64_t to = std::min(from + rng_.between(1, 12), shape_.train_records);
    world_.say("operator: skip {}:{}", from, to);
    return daemon->skip(from, to);
  }
  world_.say("operator: stop");
  on_.daemons.stop_asked(rng_.time({}, seconds(3)));
}

void FaultPlan::end() {
  over_ = true;
  on_.faults = {};
  world_.say("no more faults");
  on_.network.mend();
  on_.disk.set_full(false);
  on_.files.full = false;
  on_.files.away = false;
  for (auto& h : on_.hosts.all()) {
    h->wake();
    h->power_on(false, on_.clocks.base());
    h->start_agent();
  }
  for (const auto& program : on_.hosts.programs()) program->set_slowdown(1);
  on_.daemons.start_after({});
  if (!shape_.pins.empty()) help_domains();
}

void FaultPlan::help_domains() {
  if (on_.daemons.ended()) return;
  Daemon* const daemon = on_.daemons.newest();
  if (daemon != nullptr && !on_.daemons.over()) {
    const auto domains = ctl::pinned_domains(daemon->machine()->ledger());
    if (std::ranges::any_of(domains, &ctl::PinnedDomain::waits)) {
      // There may be more servers than at first.
      const auto servers = static_cast<std::uint32_t>(std::ranges::count_if(
          daemon->machine()->lifecycle().workers(), [](const ctl::WorkerProcess& w) {
            return w.is_server() && w.state != ctl::WorkerProcess::kRemoved;
          }));
      const std::uint32_t count = std::min(slots_ - servers, shape_.global_batch);
      world_.say("operator: resize to {}, because a domain waits", count);
      daemon->feed_soon(ctl::lifecycle::WorkerCountRequested{count, "a domain waits"});
    }
  }
  world_.after(seconds(5), [this] { help_domains(); });
}

}  // namespace antdt::sim
