// What operators and the controller ask for while a job runs: who is to leave, who
// to be started again, and how many there are to be.
#include <algorithm>

#include "ctl/lifecycle.h"

namespace antdt::ctl {

Status Lifecycle::check(const job::EvictAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  const auto id = parse_worker_id(e.target);
  const WorkerProcess* worker = id ? find(*id) : nullptr;
  const HostState* host = worker != nullptr ? nullptr : hosts_.named(e.target);
  if (worker == nullptr && host == nullptr) {
    return antdt::fail(ErrorKind::kUsage,
                       "'{}' is neither a worker nor a host of this job; antdt status lists both",
                       e.target);
  }
  if (worker != nullptr && !worker->running()) {
    return antdt::fail(ErrorKind::kRefused, "{} is not running, it is {}", e.target,
                       state_name(worker->state));
  }
  const bool takes_server = std::ranges::any_of(image_.workers, [&](const WorkerProcess& w) {
    return w.is_server() && w.running() &&
           (&w == worker || (host != nullptr && w.place.host == host->host));
  });
  if (takes_server) {
    return antdt::fail(
        ErrorKind::kRefused,
        "{} has a parameter server: servers are moved one at a time, so name each by "
        "itself, as in antdt evict JOB s0, and then the workers that are to leave",
        e.target);
  }
  const auto stays = [&](const WorkerProcess& w) {
    return w.running() && !w.leaving && &w != worker && !w.is_server() &&
           (host == nullptr || w.place.host != host->host);
  };
  const std::string& from = worker != nullptr ? worker->place.host : host->host;
  const bool elsewhere = std::ranges::any_of(hosts_.all(), [&](const HostState& h) {
    return h.up && !h.closed && h.host != from && h.room > 0;
  });
  if (!elsewhere && std::ranges::none_of(image_.workers, stays)) {
    return antdt::fail(ErrorKind::kRefused,
                       "nobody would be left to train: no other host takes workers; use antdt stop "
                       "to end the job");
  }
  return {};
}

void Lifecycle::on(const job::EvictAsked& e, Effects& out) {
  if (!check(e)) return;
  const HostState* host = hosts_.named(e.target);
  const auto id = parse_worker_id(e.target);
  if (id && find(*id) != nullptr) host = nullptr;
  if (host != nullptr) hosts_.close(std::string(host->host));
  for (WorkerProcess& w : image_.workers) {
    const bool meant = host != nullptr ? w.place.host == host->host : w.place.worker == *id;
    if (meant && w.running()) ask_to_leave(w, e.reason, e.deadline, out);
  }
  out.emplace_back(job::Note{"evict", fmt::format("{} is asked to leave: {}", e.target, e.reason)});
  out.emplace_back(job::SaveImage{});
}

Status Lifecycle::check(const job::RestartAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  const WorkerProcess* worker = find(e.member.worker);
  if (worker == nullptr || worker->member() != e.member || !worker->running()) {
    return antdt::fail(ErrorKind::kRefused, "attempt {} of {} does not run any more",
                       e.member.attempt, e.member.worker);
  }
  if (worker->leaving) {
    return antdt::fail(ErrorKind::kRefused, "{} leaves already", e.member.worker);
  }
  if (worker->is_server() && (worker->apart || image_.servers_wanted > 0)) {
    return antdt::fail(
        ErrorKind::kRefused, "the servers become {} now: {} can be moved when they are",
        image_.servers_wanted > 0 ? image_.servers_wanted : servers(), e.member.worker);
  }
  if (worker->is_server() && spec_.server_replicas < 2) return check_move(*worker);
  if (is_gang()) {
    return antdt::fail(ErrorKind::kRefused,
                       "the workers of this job are started again all together: [roles.worker] "
                       "restart = \"member\" lets one go by itself");
  }
  return {};
}

void Lifecycle::on(const job::RestartAsked& e, Effects& out) {
  if (!check(e)) return;
  WorkerProcess& worker = *find_mutable(e.member);
  if (worker.is_server() && spec_.server_replicas < 2) return move(worker, e.reason, out);
  worker.comes_back = true;
  hosts_.failed_on(worker.place.host, seconds());  // others are to prefer another one, too
  ask_to_leave(worker, e.reason, e.deadline, out);
  out.emplace_back(
      job::Note{"kill-restart", fmt::format("{} is started again: {}", e.member.worker, e.reason)});
  out.emplace_back(job::SaveImage{});
}

void Lifecycle::ask_to_leave(WorkerProcess& worker, const std::string& reason, Duration deadline,
                             Effects& out) {
  if (worker.leaving) return;
  worker.leaving = true;
  worker.leaves_until_s = seconds() + to_seconds(deadline);
  const bool hears = worker.state == WorkerProcess::kJoined;
  if (hears && spec_.protocol == Protocol::kAntdt) {
    out.emplace_back(job::LeaveWorker{worker.member(), {reason, kExitResumable}});
    return;
  }
  worker.asked_to_stop = true;
  worker.killed_from_s = seconds() + to_seconds(deadline);
  out.emplace_back(job::StopWorker{worker.member(), worker.place.host, deadline});
}

void Lifecycle::left_as_asked(WorkerProcess& worker, Effects& out) {
  if (state() == JobState::kFinishing) {
    worker.state = WorkerProcess::kRemoved;
    return;
  }
  if (image_.gang_stops) {
    worker.state = WorkerProcess::kWaiting;
    return restart_gang_if_all_left(out);
  }
  const HostState* elsewhere = nullptr;
  if (!worker.stays_away) {
    const std::string& from = worker.place.host;
    elsewhere = hosts_.choose(worker, image_.workers, seconds(), {from, host_of_second(worker)});
    if (elsewhere == nullptr) {
      elsewhere = hosts_.choose(worker, image_.workers, seconds(), {from});
    }
  }
  if (elsewhere == nullptr && worker.comes_back && !worker.stays_away)
    elsewhere = hosts_.find(worker.place.host);
  if (elsewhere == nullptr) {
    worker.state = WorkerProcess::kRemoved;
    out.emplace_back(job::Note{
        "left", worker.is_server() ? fmt::format("{} has left", worker.place.worker)
                                   : fmt::format("{} has left; its share is spread over the others",
                                                 worker.place.worker)});
  } else {
    worker.place.host = elsewhere->host;
    worker.place.host_order = elsewhere->order;
    wait_for_place(worker);
    worker.quick_failures = 0;
    worker.waits_until_s = 0;
    start_waiting(out);
  }
  out.emplace_back(job::SaveImage{});
  expect(out);
}

Status Lifecycle::check(const job::ResizeAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  if (spec_.protocol != Protocol::kAntdt) {
    return antdt::fail(ErrorKind::kUsage,
                       "only programs that speak the antdt protocol can be resized while they run");
  }
  if (e.count == 0) return antdt::fail(ErrorKind::kUsage, "a job has at least one worker");
  const auto present =
      static_cast<std::uint32_t>(std::ranges::count_if(image_.workers, [](const WorkerProcess& w) {
        return w.state != WorkerProcess::kRemoved && !w.stays_away && !w.is_server();
      }));
  const std::uint32_t room = hosts_.room_left(image_.workers);
  if (e.count > present && e.count - present > room) {
    return antdt::fail(ErrorKind::kRefused,
                       "{} workers are wanted, and the hosts have room for {} more than the {} "
                       "there are; lower [roles.worker] resources or add hosts",
                       e.count, room, present);
  }
  return {};
}

void Lifecycle::on(const job::ResizeAsked& e, Effects& out) {
  if (!check(e)) return;
  std::vector<WorkerProcess*> present;
  for (WorkerProcess& w : image_.workers) {
    const bool counts = w.state != WorkerProcess::kRemoved && !w.stays_away && !w.is_server();
    if (counts) present.push_back(&w);
  }
  out.emplace_back(job::Note{
      "resize", fmt::format("from {} to {} workers: {}", present.size(), e.count, e.reason)});
  for (std::size_t i = present.size(); i > e.count; --i) {
    WorkerProcess& w = *present[i - 1];
    w.stays_away = true;
    if (w.running()) {
      ask_to_leave(w, e.reason, spec_.stop_grace, out);
    } else {
      w.state = WorkerProcess::kRemoved;
    }
  }
  for (std::size_t i = present.size(); i < e.count; ++i) {
    const auto gone = std::ranges::find_if(image_.workers, [](const WorkerProcess& w) {
      return w.state == WorkerProcess::kRemoved && !w.is_server();
    });
    WorkerProcess next;
    if (gone != image_.workers.end()) {
      next.place = gone->place;
      next.attempt = gone->attempt.next();
    } else {
      next.place.worker = {'w', static_cast<std::uint32_t>(std::ranges::count(
                                    image_.workers, false, &WorkerProcess::is_server))};
      next.attempt = Attempt{1};
    }
    next.state = WorkerProcess::kWaiting;
    if (gone != image_.workers.end()) {
      *gone = std::move(next);
    } else {
      image_.workers.push_back(std::move(next));
    }
  }
  out.emplace_back(job::SaveImage{});
  start_waiting(out);
}

}  // namespace antdt::ctl
