// Whether an operator's request can be granted; the error says why it cannot.
#include "ctl/lifecycle/possible.h"

#include <algorithm>

#include "core/checkpoint/model_slices.h"

namespace antdt::ctl::lifecycle {

// The id of a server's other process, if the server is two processes or is being moved. For a
// process of the next group size, the id with that size.
WorkerId ServerPairs::second_id(const WorkerProcess& server) const {
  const bool next = server.apart() && life_.image.servers_wanted > 0;
  const std::uint32_t count = next ? life_.image.servers_wanted : life_.servers();
  const std::uint32_t index = server.place.worker.index;
  return {'s', index < count ? index + count : index - count};
}

const WorkerProcess* ServerPairs::second_of(const WorkerProcess& server) const {
  return server.is_server() ? life_.find(second_id(server)) : nullptr;
}

// Whether both processes of a server without replicas exist.
bool ServerPairs::is_moving(const WorkerProcess& server) const {
  const WorkerProcess* const second = second_of(server);
  return life_.spec.server_replicas < 2 && second != nullptr &&
         second->state != WorkerProcess::kRemoved && !server.apart() && !second->apart();
}

// The host on which a server's other process runs, which is better avoided for this one; empty:
// none.
std::string ServerPairs::host_of_second(const WorkerProcess& server) const {
  const WorkerProcess* const second = second_of(server);
  return second != nullptr && second->running() ? second->place.host : "";
}

// The processes of each server if there are `count` servers.
std::vector<WorkerId> ServerPairs::processes_of(std::uint32_t count) const {
  const auto runs = [&](WorkerId id) {
    const WorkerProcess* const w = life_.find(id);
    return w != nullptr && w->state != WorkerProcess::kRemoved && !w->stays_away();
  };
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) {
    const WorkerId first{'s', i};
    const WorkerId second{'s', i + count};
    const bool both = life_.spec.server_replicas > 1;
    if (both || runs(first) || !runs(second)) ids.push_back(first);
    if (both || (!runs(first) && runs(second))) ids.push_back(second);
  }
  return ids;
}

std::vector<WorkerId> ServerPairs::added_for(std::uint32_t count) const {
  std::vector<WorkerId> ids = processes_of(count);
  std::erase_if(ids, [&](WorkerId id) {
    const WorkerProcess* const w = life_.find(id);
    return w != nullptr && w->state != WorkerProcess::kRemoved;
  });
  return ids;
}

Status Possible::check(const EvictionRequested& e) const {
  if (life_.stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  const auto id = parse_worker_id(e.target);
  const WorkerProcess* worker = id ? life_.find(*id) : nullptr;
  const HostState* host = worker != nullptr ? nullptr : life_.hosts.named(e.target);
  if (worker == nullptr && host == nullptr) {
    return antdt::fail(ErrorKind::kUsage,
                       "'{}' is neither a worker nor a host of this job; antdt status lists both",
                       e.target);
  }
  if (worker != nullptr && !worker->running()) {
    return antdt::fail(ErrorKind::kRefused, "{} is not running, it is {}", e.target,
                       process_state(worker->state));
  }
  const bool takes_server = std::ranges::any_of(life_.workers, [&](const WorkerProcess& w) {
    return w.is_server() && w.running() &&
           (&w == worker || (host != nullptr && w.place.host == host->host));
  });
  if (takes_server) {
    return antdt::fail(
        ErrorKind::kRefused,
        "{} has a parameter server: servers are moved one at a time, so name each by itself, as in "
        "antdt evict RUN s0, and then the workers that are to leave",
        e.target);
  }
  const auto stays = [&](const WorkerProcess& w) {
    return w.running() && !w.leaving() && &w != worker && !w.is_server() &&
           (host == nullptr || w.place.host != host->host);
  };
  const std::string& from = worker != nullptr ? worker->place.host : host->host;
  const bool elsewhere = std::ranges::any_of(life_.hosts.all(), [&](const HostState& h) {
    return h.takes_processes() && h.host != from && h.room > 0;
  });
  if (!elsewhere && std::ranges::none_of(life_.workers, stays)) {
    return antdt::fail(ErrorKind::kRefused,
                       "nobody would be left to train: no other host takes workers; use antdt stop "
                       "to end the job");
  }
  return {};
}

Status Possible::check_drain(const HostState& host) const {
  const auto trains = [](const WorkerProcess& w) { return w.running() && !w.is_server(); };
  const auto there = std::ranges::count_if(life_.workers, [&](const WorkerProcess& w) {
    return trains(w) && w.place.host == host.host;
  });
  const std::uint32_t room = life_.hosts.room_left(life_.workers);
  if (life_.is_gang() && room < static_cast<std::uint32_t>(there)) {
    return antdt::fail(
        ErrorKind::kRefused,
        "the workers of this job are started all together, and other hosts have room "
        "for {} of the {} there; antdt stop ends the job with a checkpoint",
        room, there);
  }
  const bool others = std::ranges::any_of(life_.workers, [&](const WorkerProcess& w) {
    const HostState* const at = life_.hosts.find(w.place.host);
    return trains(w) && !w.leaving() && at != nullptr && at->up && at->drained.empty();
  });
  if (others || room > 0) return {};
  return antdt::fail(ErrorKind::kRefused,
                     "nobody would be left to train, and no other host takes workers; antdt stop "
                     "ends the job with a checkpoint");
}

Status Possible::check(const RestartRequested& e) const {
  if (life_.stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  const WorkerProcess* worker = life_.find(e.member.worker);
  if (worker == nullptr || worker->member() != e.member || !worker->running()) {
    return antdt::fail(ErrorKind::kRefused, "attempt {} of {} does not run any more",
                       e.member.attempt, e.member.worker);
  }
  if (worker->leaving()) {
    return antdt::fail(ErrorKind::kRefused, "{} leaves already", e.member.worker);
  }
  if (worker->is_server() && (worker->apart() || life_.image.servers_wanted > 0)) {
    return antdt::fail(
        ErrorKind::kRefused, "the servers become {} now: {} can be moved when they are",
        life_.image.servers_wanted > 0 ? life_.image.servers_wanted : life_.servers(),
        e.member.worker);
  }
  if (worker->is_server() && life_.spec.sync == SyncStrategy::kHybrid) {
    return antdt::fail(ErrorKind::kUsage,
                       "servers of a job with sync = \"hybrid\" cannot be moved: stop the job and "
                       "resume it");
  }
  if (worker->is_server() && life_.spec.server_replicas < 2) return check_move(*worker);
  if (life_.is_gang()) {
    return antdt::fail(ErrorKind::kRefused,
                       "the workers of this job are started again all together: [roles.worker] "
                       "restart = \"member\" lets one go by itself");
  }
  return {};
}

Status Possible::check(const WorkerCountRequested& e) const {
  if (life_.stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  if (life_.spec.protocol != Protocol::kAntdt) {
    return antdt::fail(ErrorKind::kUsage,
                       "only programs that speak the antdt protocol can be resized while they run");
  }
  if (e.count == 0) return antdt::fail(ErrorKind::kUsage, "a job has at least one worker");
  const JobSpec& spec = life_.spec;
  if (spec.most_workers > 0 && (e.count < spec.fewest_workers || e.count > spec.most_workers)) {
    return antdt::fail(ErrorKind::kUsage,
                       "{0} workers are outside of the bounds of this job, which are "
                       "roles.worker.count = {{ min = {1}, max = {2} }} in its job.toml: ask for "
                       "{1} to {2}, or begin a new run with other bounds",
                       e.count, spec.fewest_workers, spec.most_workers);
  }
  const auto present =
      static_cast<std::uint32_t>(std::ranges::count_if(life_.workers, [](const WorkerProcess& w) {
        return w.state != WorkerProcess::kRemoved && !w.stays_away() && !w.is_server();
      }));
  const std::uint32_t room = life_.hosts.room_left(life_.workers);
  if (e.count > present && e.count - present > room) {
    return antdt::fail(ErrorKind::kRefused,
                       "{} workers are wanted, and the hosts have room for {} more than the {} "
                       "there are; lower [roles.worker] resources or add hosts",
                       e.count, room, present);
  }
  return {};
}

Status Possible::check_move(const WorkerProcess& server) const {
  // If a server cannot write the model, it may be moved to a host where it can.
  const bool model_fails = !life_.image.model_kept && !life_.checkpoints.error().empty();
  if (life_.state() == JobState::kFinishing && !model_fails) {
    return antdt::fail(ErrorKind::kRefused, "all is trained, the job is about to end");
  }
  if (const WorkerProcess* const second = ServerPairs(life_).second_of(server);
      second != nullptr && second->apart() && second->state != WorkerProcess::kRemoved) {
    return antdt::fail(ErrorKind::kRefused, "{} is about to leave: try again soon",
                       second->place.worker);
  }
  if (ServerPairs(life_).is_moving(server)) {
    return antdt::fail(ErrorKind::kRefused, "{} is being moved: {} takes over from {}",
                       server.place.worker,
                       server.moves_in() ? server.place.worker
                                         : ServerPairs(life_).second_of(server)->place.worker,
                       server.moves_in() ? ServerPairs(life_).second_of(server)->place.worker
                                         : server.place.worker);
  }
  if (life_.hosts.choose(server, life_.workers, life_.seconds(), {server.place.host}) == nullptr) {
    return antdt::fail(ErrorKind::kRefused,
                       "no other host has room for {}, which is moved to one before it leaves: let "
                       "a worker leave there, or add a host",
                       server.place.worker);
  }
  return {};
}

Status Possible::check(const ServerCountRequested& e) const {
  if (life_.stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  if (life_.spec.servers == 0) {
    return antdt::fail(ErrorKind::kUsage,
                       "this job has no parameter servers, its workers hold the model: antdt "
                       "resize RUN N changes how many these are");
  }
  if (life_.spec.sync == SyncStrategy::kHybrid) {
    return antdt::fail(ErrorKind::kUsage,
                       "a job with sync = \"hybrid\" has the number of servers with which it "
                       "began; for another number begin a new run");
  }
  if (e.count == 0 || e.count > kModelSlices) {
    return antdt::fail(ErrorKind::kUsage,
                       "{} servers are impossible: 1 to {} are, as the model has {} slices",
                       e.count, kModelSlices, kModelSlices);
  }
  if (life_.image.servers_wanted > 0) {
    if (e.count == life_.servers()) return {};  // the request gives the change up
    return antdt::fail(ErrorKind::kRefused,
                       "the servers become {} already: wait until they are, or give that up with "
                       "antdt resize RUN {} --role server",
                       life_.image.servers_wanted, life_.servers());
  }
  if (life_.state() == JobState::kFinishing) {
    return antdt::fail(ErrorKind::kRefused, "all is trained, the job is about to end");
  }
  for (const WorkerProcess& w : life_.workers) {
    if (!w.is_server() || w.state == WorkerProcess::kRemoved) continue;
    if (!w.leaving() && !w.apart() && !ServerPairs(life_).is_moving(w)) continue;
    return antdt::fail(ErrorKind::kRefused, "{} is about to leave, or to be moved: try again soon",
                       w.place.worker);
  }
  const auto added = ServerPairs(life_).added_for(e.count);
  const std::uint32_t room = life_.hosts.room_left(life_.workers);
  if (added.size() > room) {
    return antdt::fail(ErrorKind::kRefused,
                       "{} servers need {} more processes, and the hosts have room for {}: let "
                       "workers leave (antdt resize RUN N), or add hosts",
                       e.count, added.size(), room);
  }
  return {};
}

}  // namespace antdt::ctl::lifecycle
