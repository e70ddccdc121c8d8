// Where processes are started, and started again: one by one, or all together.
#include <algorithm>

#include "ctl/lifecycle/possible.h"
#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
namespace {

// How long a server whose host is lost waits for it, or for room elsewhere, before a worker gives
// it its place.
constexpr double kWaitsForRoomS = 10;

}  // namespace

void Starts::on(const WorkersPlaced& e) {
  for (const PlacedWorker& place : e.workers) {
    life_.workers.push_back(WorkerProcess::planned(place, life_.seconds()));
  }
  life_.set_state(JobState::kStarting);
  if (life_.spec.external) {
    life_.image.collective = false;
    turn_.training.open_phase(1);
    return;
  }
  out_.emplace_back(PersistImage{});
  if (life_.spec.protocol == Protocol::kTorchrun) {
    out_.emplace_back(PrepareGang{e.workers});
    return;
  }
  for (const WorkerProcess& w : life_.workers) {
    out_.emplace_back(StartWorker{w.member(), w.place.host});
  }
  expect();
}

void Starts::on(const WorkerStarted& e) {
  WorkerProcess* worker = life_.find_mutable(e.member);
  if (worker == nullptr || !worker->start(e.pid, life_.seconds())) return;
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{
      "worker-started",
      fmt::format(
          "{} started on {} (pid {}{})", e.member.worker, life_.host_name(worker->place.host),
          e.pid, e.member.attempt.value > 1 ? fmt::format(", attempt {}", e.member.attempt) : "")});
  if (life_.state() != JobState::kStarting) return;
  // The workers with the highest numbers are started last, so they are looked at first.
  const bool all =
      std::none_of(life_.workers.rbegin(), life_.workers.rend(),
                   [](const WorkerProcess& w) { return w.state == WorkerProcess::kPlanned; });
  if (!all) return;
  life_.set_state(life_.spec.protocol == Protocol::kAntdt ? JobState::kForming
                                                          : JobState::kTraining);
}

void Starts::expect() {
  if (life_.spec.protocol == Protocol::kAntdt) out_.emplace_back(ExpectMembers{});
}

void Starts::on(const HostCameUp& e) {
  life_.hosts.up(e.host);
  out_.emplace_back(PersistImage{});
  if (!life_.stopping()) start_waiting();
  turn_.wishes.leave_drained_hosts();
}

void Starts::start_waiting() {
  if (life_.image.gang_stops) return restart_gang_if_all_left();
  const auto due = [this](const WorkerProcess& w) {
    return w.state == WorkerProcess::kWaiting && life_.seconds() >= w.waits_until_s;
  };
  if (std::ranges::none_of(life_.workers, due)) return;
  bool any = false;
  std::uint32_t room = life_.hosts.room_left(life_.workers);  // for workers: servers have theirs
  bool full = false;  // a server that has lost its host found no other, so none will
  for (WorkerProcess& w : life_.workers) {
    if (!due(w)) continue;
    const bool homeless = life_.hosts.is_homeless(w);
    if (homeless ? full : !w.is_server() && room == 0) continue;
    const HostState* host = life_.hosts.choose(w, life_.workers, life_.seconds(),
                                               {ServerPairs(life_).host_of_second(w)});
    if (host == nullptr && !w.moves_in())
      host = life_.hosts.choose(w, life_.workers, life_.seconds());
    if (host == nullptr) {  // it waits until a host has room; `antdt status` shows that
      full = full || homeless;
      continue;
    }
    w.plan_on(host->host, host->order, life_.seconds());
    out_.emplace_back(StartWorker{w.member(), w.place.host});
    any = true;
    if (!w.is_server()) --room;
  }
  if (full) help_stranded_server();
  if (!any) return;
  out_.emplace_back(PersistImage{});
  expect();
}

// One of the present group, without which nobody trains: its second process, if it has one, does
// not run either.
void Starts::help_stranded_server() {
  if (life_.stopping()) return;
  const auto is_stranded = [this](const WorkerProcess& w) {
    return life_.hosts.is_homeless(w) && !w.apart() &&
           life_.seconds() >= w.waits_until_s + kWaitsForRoomS &&
           ServerPairs(life_).host_of_second(w).empty();
  };
  const auto server = std::ranges::find_if(life_.workers, is_stranded);
  if (server != life_.workers.end()) turn_.wishes.give_place_to(*server);
}

void Starts::on(const WorkerStartRefused& e) {
  WorkerProcess* worker = life_.find_mutable(e.member);
  if (worker == nullptr || worker->state != WorkerProcess::kPlanned) return;
  worker->refuse(life_.seconds());
  const std::string reason = fmt::format("{} could not be started on {}: {}", e.member.worker,
                                         life_.host_name(worker->place.host), e.reason);
  // A process that was replaced on a host that was away may still take room there.
  const bool at_first = worker->attempt == Attempt{1} && life_.state() == JobState::kStarting;
  const HostState* const host = life_.hosts.find(worker->place.host);
  const bool drained = host != nullptr && !host->drained.empty();  // that is no failure
  if (!drained && (at_first || life_.spec.restart == Restart::kNever)) {
    turn_.stopping.fail(
        {JobEnd::kFailed, 3, ExitClass::kHost, life_.checkpoints.any_stored(), reason});
    return turn_.stopping.end_if_all_left();
  }
  out_.emplace_back(WriteNote{"start-refused", reason});
  out_.emplace_back(ReleaseWorker{worker->member(), reason, true, false});
  if (!drained) {
    life_.hosts.failed_on(worker->place.host, life_.seconds());
    worker->quick_failures += 2;  // so that it is not started again at once
  }
  worker->begin_again(life_.seconds());
  out_.emplace_back(PersistImage{});
  expect();
}

// All processes have gone or are given up; each begins a new attempt.
void Starts::on(const RunResumed&) {
  life_.image.outcome.reset();
  life_.image.gang_stops = life_.image.model_kept = false;
  life_.checkpoints.give_up();
  life_.incidents.forgive();
  life_.phases.disband();
  turn_.servers.change_servers_at_resume();
  bool someone = false;
  for (WorkerProcess& w : life_.workers) {
    if (w.state == WorkerProcess::kRemoved) continue;
    if (w.running()) {
      out_.emplace_back(ReleaseWorker{w.member(), "the run is resumed", false, false});
    }
    if (w.stays_away()) {  // it was about to leave when the run was stopped
      w.remove();
      continue;
    }
    w.begin_again(life_.seconds());
    w.quick_failures = 0;
    w.waits_until_s = 0;
    someone = someone || !w.is_server();
  }
  // The workers that were to stay had left before these.
  if (!someone && !life_.workers.empty()) life_.workers.front().begin_again(life_.seconds());
  life_.set_state(JobState::kForming);
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{"resumed", "the run goes on from its last checkpoint"});
}

// From: a gang of which some process may not have been started. To: all begin again. The port and
// the ranks that it would be started with were the earlier job daemon's, and the others may have
// them.
void Starts::on(const DaemonFollowed&) {
  const auto planned =
      std::ranges::find(life_.workers, WorkerProcess::kPlanned, &WorkerProcess::state);
  const bool concerns = life_.spec.protocol == Protocol::kTorchrun && !life_.stopping() &&
                        !life_.image.gang_stops && planned != life_.workers.end();
  if (!concerns) return;
  const std::string why =
      fmt::format("{} was not started before the job daemon was lost", planned->place.worker);
  if (life_.spec.restart != Restart::kNever) {
    out_.emplace_back(WriteNote{"gang", why + ": all processes begin again"});
    return stop_gang(*planned);
  }
  turn_.stopping.fail({JobEnd::kFailed, 3, ExitClass::kHost, false,
                       why + ", and roles.worker.restart = \"never\": run the job again"});
  turn_.stopping.end_if_all_left();
}

void Starts::stop_gang(const WorkerProcess& cause) {
  if (!life_.image.gang_stops) {
    life_.image.gang_stops = true;
    life_.image.gang_quick_failures =
        ended_quickly(cause) ? life_.image.gang_quick_failures + 1 : 0;
    life_.image.gang_waits_until_s =
        life_.seconds() + restart_delay_s(life_.image.gang_quick_failures);
    for (WorkerProcess& w : life_.workers) {
      if (w.running()) turn_.stopping.stop_worker(w, life_.spec.stop_grace);
    }
  }
  out_.emplace_back(PersistImage{});
  restart_gang_if_all_left();
}

void Starts::restart_gang_if_all_left() {
  if (std::ranges::any_of(life_.workers, &WorkerProcess::running)) return;
  if (life_.seconds() < life_.image.gang_waits_until_s) return;
  std::vector<WorkerProcess> next = life_.workers;
  for (WorkerProcess& w : next) {
    w.stop_waiting();
  }
  PrepareGang gang;
  for (WorkerProcess& w : next) {
    if (w.state == WorkerProcess::kRemoved) continue;
    const HostState* host = life_.hosts.choose(w, next, life_.seconds());
    if (host == nullptr) return;  // all or none: it waits until there is room for all
    w.begin_again(life_.seconds());
    w.plan_on(host->host, host->order, life_.seconds());
  }
  life_.workers = std::move(next);
  life_.image.gang_stops = false;
  std::ranges::sort(life_.workers, {}, [](const WorkerProcess& w) {
    return std::pair(w.place.worker.role, w.place.worker.index);
  });
  for (const WorkerProcess& w : life_.workers) {
    if (w.running()) gang.workers.push_back(w.place);
  }
  // Processes that make no group do not say when they train.
  if (life_.spec.protocol == Protocol::kTorchrun) life_.incidents.end(life_.seconds());
  if (life_.incidents.is_open()) life_.incidents.close();
  out_.emplace_back(PersistImage{});
  out_.emplace_back(WriteNote{
      "gang", fmt::format("all {} processes are started again together", gang.workers.size())});
  if (life_.spec.protocol == Protocol::kTorchrun) {
    out_.emplace_back(std::move(gang));
  } else {
    on(GangPrepared{});
  }
}

void Starts::on(const GangPrepared&) {
  for (const WorkerProcess& w : life_.workers) {
    if (w.state != WorkerProcess::kPlanned) continue;
    out_.emplace_back(StartWorker{w.member(), w.place.host});
  }
  expect();
}

}  // namespace antdt::ctl::lifecycle
