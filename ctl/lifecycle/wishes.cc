// Requests of operators and of the controller while a job runs: which process is to leave, which is
// started again, and how many there are to be.
#include <algorithm>
#include <map>
#include <string>

#include "ctl/lifecycle/possible.h"
#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
namespace {

// How soon a request to leave is repeated.
constexpr Duration kAskAgain = std::chrono::seconds(2);

}  // namespace

void Wishes::on(const EvictionRequested& e) {
  if (!Possible(life_).check(e)) return;
  const HostState* host = life_.hosts.named(e.target);
  const auto id = parse_worker_id(e.target);
  if (id && life_.find(*id) != nullptr) host = nullptr;
  if (host != nullptr) life_.hosts.close(std::string(host->host));
  for (WorkerProcess& w : life_.workers) {
    const bool meant = host != nullptr ? w.place.host == host->host : w.place.worker == *id;
    if (meant && w.running()) ask_to_leave(w, e.reason, e.deadline);
  }
  out_.emplace_back(
      WriteNote{"evict", fmt::format("{} is asked to leave: {}", e.target, e.reason)});
  out_.emplace_back(PersistImage{});
}

void Wishes::on(const RestartRequested& e) {
  if (!Possible(life_).check(e)) return;
  WorkerProcess& worker = *life_.find_mutable(e.member);
  const HostState* const wanted = e.host.empty() ? nullptr : life_.hosts.named(e.host);
  const std::string goes_to = wanted == nullptr ? "" : wanted->host;
  if (worker.is_server() && life_.spec.server_replicas < 2)
    return turn_.moves.move(worker, goes_to, e.reason);
  worker.after = WorkerProcess::After::kComesBack;
  worker.goes_to = goes_to;
  const HostState* const host = life_.hosts.find(worker.place.host);
  if (host == nullptr || host->drained.empty()) {
    life_.hosts.failed_on(worker.place.host,
                          life_.seconds());  // other processes are to prefer another host, too
  }
  ask_to_leave(worker, e.reason, e.deadline);
  out_.emplace_back(
      WriteNote{"kill-restart", fmt::format("{} is started again: {}", e.member.worker, e.reason)});
  out_.emplace_back(PersistImage{});
}

void Wishes::on(const HostDrained& e) {
  const HostState* const host = life_.hosts.find(e.host);
  if (host == nullptr || host->drained == e.by_whom) return;
  life_.hosts.drain(e.host, e.by_whom);
  out_.emplace_back(WriteNote{
      "drain", e.by_whom.empty() ? fmt::format("{} is not drained any more", host->name)
                                 : fmt::format("{} is drained {}", host->name, e.by_whom)});
  out_.emplace_back(PersistImage{});
  if (life_.stopping()) return;
  if (e.by_whom.empty()) return turn_.starts.start_waiting();
  leave_drained_hosts();
}

void Wishes::leave_drained_hosts() {
  if (life_.stopping() || life_.state() == JobState::kFinishing || life_.image.gang_stops) return;
  for (const HostState& host : life_.hosts.all()) {
    if (!host.drained.empty() && host.up) leave_drained(host);
  }
}

// A worker comes back on another host, or on this one when it is not drained any more. Servers are
// moved one at a time (ctl/job/subjects/operators.h).
void Wishes::leave_drained(const HostState& host) {
  const auto goes = [&](const WorkerProcess& w) {
    return w.running() && !w.leaving() && !w.is_server() && w.place.host == host.host;
  };
  const auto first = std::ranges::find_if(life_.workers, goes);
  if (first == life_.workers.end()) return;
  if (const Status possible = Possible(life_).check_drain(host); !possible) {
    out_.emplace_back(WriteNote{"drain", fmt::format("the workers on {} stay there: {}", host.name,
                                                     possible.error().message)});
    return;
  }
  const std::string reason = fmt::format("{} is drained {}", host.name, host.drained);
  if (life_.is_gang()) return turn_.starts.stop_gang(*first);
  for (WorkerProcess& w : life_.workers) {
    if (!goes(w)) continue;
    if (!w.stays_away()) w.after = WorkerProcess::After::kComesBack;
    ask_to_leave(w, reason, life_.spec.stop_grace);
  }
  out_.emplace_back(PersistImage{});
}

void Wishes::ask_to_leave(WorkerProcess& worker, const std::string& reason, Duration deadline) {
  if (worker.leaving()) return;
  worker.ask_to_leave(life_.seconds() + to_seconds(deadline));
  const bool hears = worker.state == WorkerProcess::kJoined;
  if (hears && life_.spec.protocol == Protocol::kAntdt) {
    out_.emplace_back(AskToLeave{worker.member(), {reason, kExitResumable}});
    return;
  }
  turn_.stopping.stop_worker(worker, deadline);
}

// A request is lost if the worker's agent dies with it, or before the worker is connected to the
// next one, and an earlier incarnation of the job daemon may have decided on it and not sent it. A
// worker that has heard it ignores the others.
void Wishes::repeat_requests() {
  if (life_.spec.protocol != Protocol::kAntdt) return;
  if (life_.asked_again && life_.now - *life_.asked_again < kAskAgain) return;
  life_.asked_again = life_.now;
  for (const WorkerProcess& w : life_.workers) {
    const bool is_asked = w.state == WorkerProcess::kJoined && w.leaving() && !w.asked_to_stop();
    if (is_asked) out_.emplace_back(AskToLeave{w.member(), {"asked before", kExitResumable}});
  }
}

void Wishes::left_as_asked(WorkerProcess& worker) {
  if (life_.state() == JobState::kFinishing) {
    worker.remove();
    return;
  }
  if (life_.image.gang_stops) {
    worker.wait_for_gang();
    return turn_.starts.restart_gang_if_all_left();
  }
  const HostState* elsewhere = nullptr;
  if (!worker.stays_away()) {
    const std::string& from = worker.place.host;
    elsewhere = life_.hosts.choose(worker, life_.workers, life_.seconds(),
                                   {from, ServerPairs(life_).host_of_second(worker)});
    if (elsewhere == nullptr) {
      elsewhere = life_.hosts.choose(worker, life_.workers, life_.seconds(), {from});
    }
  }
  if (elsewhere == nullptr && worker.comes_back() && !worker.stays_away())
    elsewhere = life_.hosts.find(worker.place.host);
  if (elsewhere == nullptr) {
    worker.remove();
    out_.emplace_back(WriteNote{
        "left", worker.is_server() ? fmt::format("{} has left", worker.place.worker)
                                   : fmt::format("{} has left; its share is spread over the others",
                                                 worker.place.worker)});
  } else {
    worker.place.host = elsewhere->host;
    worker.place.host_order = elsewhere->order;
    worker.begin_again(life_.seconds());
    worker.quick_failures = 0;
    worker.waits_until_s = 0;
    turn_.starts.start_waiting();
  }
  out_.emplace_back(PersistImage{});
  turn_.starts.expect();
}

void Wishes::give_place_to(const WorkerProcess& server) {
  WorkerProcess* const worker = who_gives_place();
  if (worker == nullptr) return;
  const std::string reason = fmt::format(
      "{} has lost its host, and no other host has room for it: {} on {} gives it its "
      "place, and waits for room",
      server.place.worker, worker->place.worker, life_.host_name(worker->place.host));
  if (!worker->stays_away()) worker->after = WorkerProcess::After::kComesBack;
  ask_to_leave(*worker, reason, life_.spec.stop_grace);
  out_.emplace_back(WriteNote{"gives-place", reason});
  out_.emplace_back(PersistImage{});
}

// The last one that runs; nobody, if somebody is about to leave a host.
WorkerProcess* Wishes::who_gives_place() {
  const auto domain_of = [&](const WorkerProcess& w) {
    return life_.spec.pinned_to.of(w.place.worker, life_.host_name(w.place.host));
  };
  std::map<std::string, std::uint32_t> trains;  // by domain; without pins all are in one
  for (const WorkerProcess& w : life_.workers) {
    if (!w.running()) continue;
    if (w.leaving() || w.asked_to_stop()) return nullptr;
    if (!w.is_server()) ++trains[domain_of(w)];
  }
  const auto gives = [&](const WorkerProcess& w) {
    const HostState* const host = life_.hosts.find(w.place.host);
    return w.running() && !w.is_server() && host != nullptr && host->takes_processes() &&
           trains.at(domain_of(w)) > 1;
  };
  const auto last = std::find_if(life_.workers.rbegin(), life_.workers.rend(), gives);
  return last == life_.workers.rend() ? nullptr : &*last;
}

void Wishes::on(const WorkerCountRequested& e) {
  if (!Possible(life_).check(e)) return;
  std::vector<WorkerProcess*> present;
  for (WorkerProcess& w : life_.workers) {
    const bool counts = w.state != WorkerProcess::kRemoved && !w.stays_away() && !w.is_server();
    if (counts) present.push_back(&w);
  }
  out_.emplace_back(WriteNote{
      "resize", fmt::format("from {} to {} workers: {}", present.size(), e.count, e.reason)});
  for (std::size_t i = present.size(); i > e.count; --i) {
    WorkerProcess& w = *present[i - 1];
    w.after = WorkerProcess::After::kStaysAway;
    if (w.running()) {
      ask_to_leave(w, e.reason, life_.spec.stop_grace);
    } else {
      w.remove();
    }
  }
  for (std::size_t i = present.size(); i < e.count; ++i) {
    const auto gone = std::ranges::find_if(life_.workers, [](const WorkerProcess& w) {
      return w.state == WorkerProcess::kRemoved && !w.is_server();
    });
    if (gone != life_.workers.end()) {
      *gone = WorkerProcess::wait(gone->place, gone->attempt.next());
      continue;
    }
    PlacedWorker next;
    next.worker = {'w', static_cast<std::uint32_t>(
                            std::ranges::count(life_.workers, false, &WorkerProcess::is_server))};
    life_.workers.push_back(WorkerProcess::wait(next, Attempt{1}));
  }
  out_.emplace_back(PersistImage{});
  turn_.starts.start_waiting();
}

}  // namespace antdt::ctl::lifecycle
