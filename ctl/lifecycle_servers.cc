// Parameter servers that are moved. A server without replicas gets a second process on
// another host, which is given all that the first one has while that serves on
// (server_group.h); then the first one leaves. With replicas it has its second already.
#include <tuple>
#include <utility>

#include "ctl/lifecycle.h"

namespace antdt::ctl {

// Of a server that is two processes, or is moved: the other one's id. Of one of the next
// size, that it has then.
WorkerId Lifecycle::second_id(const WorkerProcess& server) const {
  const bool next = server.apart && image_.servers_wanted > 0;
  const std::uint32_t count = next ? image_.servers_wanted : servers();
  const std::uint32_t index = server.place.worker.index;
  return {'s', index < count ? index + count : index - count};
}

const WorkerProcess* Lifecycle::second_of(const WorkerProcess& server) const {
  return server.is_server() ? find(second_id(server)) : nullptr;
}

WorkerProcess* Lifecycle::second_of(const WorkerProcess& server) {
  return const_cast<WorkerProcess*>(std::as_const(*this).second_of(server));
}

// Both processes of a server that has one are there.
bool Lifecycle::is_moving(const WorkerProcess& server) const {
  const WorkerProcess* const second = second_of(server);
  return spec_.server_replicas < 2 && second != nullptr &&
         second->state != WorkerProcess::kRemoved && !server.apart && !second->apart;
}

// Where two that are one server had better not both be; empty: anywhere.
std::string Lifecycle::host_of_second(const WorkerProcess& server) const {
  const WorkerProcess* const second = second_of(server);
  return second != nullptr && second->running() ? second->place.host : "";
}

Status Lifecycle::check_move(const WorkerProcess& server) const {
  if (state() == JobState::kFinishing) {
    return antdt::fail(ErrorKind::kRefused, "all is trained, the job is about to end");
  }
  if (const WorkerProcess* const second = second_of(server);
      second != nullptr && second->apart && second->state != WorkerProcess::kRemoved) {
    return antdt::fail(ErrorKind::kRefused, "{} is about to leave: try again soon",
                       second->place.worker);
  }
  if (is_moving(server)) {
    return antdt::fail(ErrorKind::kRefused, "{} is being moved: {} takes over from {}",
                       server.place.worker,
                       server.moves_in ? server.place.worker : second_of(server)->place.worker,
                       server.moves_in ? second_of(server)->place.worker : server.place.worker);
  }
  if (hosts_.choose(server, image_.workers, seconds(), {server.place.host}) == nullptr) {
    return antdt::fail(ErrorKind::kRefused,
                       "no other host has room for {}, which is moved to one before it leaves: let "
                       "a worker leave there, or add a host",
                       server.place.worker);
  }
  return {};
}

void Lifecycle::move(WorkerProcess& server, const std::string& reason, Effects& out) {
  const WorkerProcess first = server;  // the list may grow
  const HostState* const to = hosts_.choose(first, image_.workers, seconds(), {first.place.host});
  server.moves_in = false;
  WorkerProcess* second = second_of(server);
  const Attempt attempt = second == nullptr ? Attempt{1} : second->attempt.next();
  if (second == nullptr) second = &image_.workers.emplace_back();
  *second = {};
  second->place = {second_id(first), to->host, to->order};
  second->attempt = attempt;
  second->state = WorkerProcess::kWaiting;
  second->moves_in = true;
  hosts_.failed_on(first.place.host, seconds());  // others are to prefer another one, too
  out.emplace_back(job::Note{
      "move",
      fmt::format("{} is moved from {} to {}, as {}: {}", first.place.worker,
                  host_name(first.place.host), host_name(to->host), second->place.worker, reason)});
  out.emplace_back(job::SaveImage{});
  start_waiting(out);
}

void Lifecycle::on(const job::TakenOver& e, Effects& out) {
  WorkerProcess* const server = find_mutable(e.member);
  if (server == nullptr || stopping() || !is_moving(*server)) return;
  leave_for_second(*server, "another process has taken over", out);
}

void Lifecycle::leave_for_second(WorkerProcess& server, const std::string& reason, Effects& out) {
  server.stays_away = true;
  if (server.running()) {
    ask_to_leave(server, reason, spec_.stop_grace, out);
  } else {
    server.state = WorkerProcess::kRemoved;
  }
  out.emplace_back(job::SaveImage{});
  expect(out);
}

// The group is over, and with it what only the first process had: the second begins from
// the checkpoint as well as it would.
void Lifecycle::end_moves(Effects& out) {
  if (spec_.servers == 0 || stopping()) return;
  for (WorkerProcess& w : image_.workers) {
    if (!w.is_server() || w.moves_in || w.stays_away || !is_moving(w)) continue;
    if (second_of(w)->running()) leave_for_second(w, "another process takes over", out);
  }
}

// One of the two has failed: the other one is enough.
bool Lifecycle::move_failed(WorkerProcess& server, FailureClass cls, Effects& out) {
  if (!is_moving(server)) return false;
  const WorkerProcess& second = *second_of(server);
  if (!second.running() || second.leaving) return false;
  record_failure(server, cls);
  std::ignore = takes_budget(cls);
  hosts_.failed_on(server.place.host, seconds());
  server.state = WorkerProcess::kRemoved;
  out.emplace_back(job::Note{
      "move",
      fmt::format(
          "{} is lost while {}; it is not started again", server.place.worker,
          server.moves_in
              ? fmt::format("it was to take over from {}, which goes on", second.place.worker)
              : fmt::format("{} was to take over from it, and does", second.place.worker))});
  out.emplace_back(job::SaveImage{});
  expect(out);
  return true;
}

}  // namespace antdt::ctl
