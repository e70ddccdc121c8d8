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
  if (all || name == "daemon") f.daemon_crash = 4;
  if (all || name == "agents") f.agent_crash = 3, f.host_crash = 2, f.partition = 3;
  if (all || name == "operators") f.operator_wish = 2;
  if (all || name == "messages")
    f.lose = 0.02, f.duplicate = 0.02, f.reorder = 0.02, f.delay = 0.01;
  return all || f.weight() > 0 || f.lose > 0 || name == "none";
}

void Cluster::schedule_fault() {
  // Often close together: what is hard happens while something else heals.
  const Duration pause = world_.rng().chance(0.3)
                             ? world_.rng().time({}, milliseconds(100))
                             : world_.rng().time(milliseconds(100), seconds(3));
  world_.after(pause, [this] {
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
  wish();
}

void Cluster::kill_workers() {
  auto workers = living();
  if (workers.empty()) return;
  const std::uint64_t last = world_.rng().chance(0.05)  ? workers.size()
                             : world_.rng().chance(0.2) ? 2
                                                        : 1;
  for (std::uint64_t i = 0; i < last; ++i) {
    const auto victim = last == workers.size() ? workers[i] : world_.rng().pick(workers);
    world_.say("fault: {}.{} is killed", victim->member().worker, victim->member().attempt);
    victim->kill(world_.rng().chance(0.8) ? SIGKILL : SIGSEGV);
  }
}

void Cluster::hang_a_worker() {
  auto workers = living();
  if (workers.empty()) return;
  const auto victim = world_.rng().pick(workers);
  world_.say("fault: {}.{} is stopped", victim->member().worker, victim->member().attempt);
  victim->stop();
  if (world_.rng().chance(0.3)) return;  // until somebody ends it
  world_.after(world_.rng().time(milliseconds(100), seconds(20)), [this, victim] {
    world_.say("{}.{} goes on", victim->member().worker, victim->member().attempt);
    victim->go_on();
  });
}

void Cluster::slow_a_worker() {
  auto workers = living();
  if (workers.empty()) return;
  const auto victim = world_.rng().pick(workers);
  victim->set_slowdown(static_cast<double>(world_.rng().between(1, 10)));
  world_.after(world_.rng().time(seconds(1), seconds(10)), [victim] { victim->set_slowdown(1); });
}

void Cluster::crash_the_daemon() {
  daemon_->crash();
  world_.after(world_.rng().time(milliseconds(50), seconds(5)), [this] {
    if (!ended()) daemon_->start();
  });
}

void Cluster::crash_an_agent() {
  Host& victim = *world_.rng().pick(hosts_);
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
               [&victim, empty] { victim.power_on(empty); });
}

void Cluster::cut_a_link() {
  const std::string a = world_.rng().pick(hosts_)->name();
  const std::string b = world_.rng().chance(0.5) ? "daemon" : world_.rng().pick(hosts_)->name();
  if (a == b) return;
  world_.say("fault: {} and {} do not reach each other", a, b);
  cut(a, b, world_.rng().time(milliseconds(50), seconds(12)));
}

void Cluster::wish() {
  auto workers = living();
  if (!workers.empty() && world_.rng().chance(0.5)) {
    const std::string target = to_string(world_.rng().pick(workers)->member().worker);
    world_.say("operator: evict {}", target);
    return daemon_->feed_soon(ctl::job::EvictAsked{target, "a test", seconds(2)});
  }
  const auto count = static_cast<std::uint32_t>(world_.rng().between(2, std::min(slots_, shape_.global_batch)));
  world_.say("operator: resize to {}", count);
  daemon_->feed_soon(ctl::job::ResizeAsked{count, "a test"});
}

// From here on everything that can work does. A stopped process stays stopped:
// that it is found and replaced is part of what must happen.
void Cluster::stop_faults() {
  faults_over_ = true;
  world_.say("no more faults");
  cuts_.clear();
  for (auto& h : hosts_) {
    h->power_on(false);
    h->start_agent();
  }
  if (!ended()) daemon_->start();
  for (const auto& worker : living()) worker->set_slowdown(1);
}

}  // namespace antdt::sim
