// How parameter servers are moved. A server without replicas gets a second process on another host,
// which receives everything that the first one has while that goes on serving (server_group.h);
// then the first one leaves. With replicas a server has its second process already.
#include <tuple>
#include <utility>

#include "ctl/lifecycle/possible.h"
#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {

void ServerMoves::move(WorkerProcess& server, const std::string& goes_to,
                       const std::string& reason) {
  WorkerProcess first = server;  // a copy, because the list may grow
  first.goes_to = goes_to;
  const HostState* const to =
      life_.hosts.choose(first, life_.workers, life_.seconds(), {first.place.host});
  server.standing = WorkerProcess::Standing::kOfGroup;
  WorkerProcess* second = life_.find_mutable(ServerPairs(life_).second_id(server));
  const Attempt attempt = second == nullptr ? Attempt{1} : second->attempt.next();
  if (second == nullptr) second = &life_.workers.emplace_back();
  *second = WorkerProcess::wait({ServerPairs(life_).second_id(first), to->host, to->order}, attempt,
                                WorkerProcess::Standing::kMovesIn);
  life_.hosts.failed_on(first.place.host,
                        life_.seconds());  // other processes are to prefer another host, too
  out_.emplace_back(
      WriteNote{"move", fmt::format("{} is moved from {} to {}, as {}: {}", first.place.worker,
                                    life_.host_name(first.place.host), life_.host_name(to->host),
                                    second->place.worker, reason)});
  out_.emplace_back(PersistImage{});
  turn_.starts.start_waiting();
}

void ServerMoves::on(const ServerTakenOver& e) {
  WorkerProcess* const server = life_.find_mutable(e.member);
  if (server == nullptr || life_.stopping() || !ServerPairs(life_).is_moving(*server)) return;
  leave_for_second(*server, "another process has taken over");
}

void ServerMoves::leave_for_second(WorkerProcess& server, const std::string& reason) {
  server.after = WorkerProcess::After::kStaysAway;
  if (server.running()) {
    turn_.wishes.ask_to_leave(server, reason, life_.spec.stop_grace);
  } else {
    server.remove();
  }
  out_.emplace_back(PersistImage{});
  turn_.starts.expect();
}

// The group is over, and so is what only the first process had. The second process can begin from
// the checkpoint as well as the first one could.
void ServerMoves::end_moves() {
  if (life_.spec.servers == 0 || life_.stopping()) return;
  for (WorkerProcess& w : life_.workers) {
    if (!w.is_server() || w.moves_in() || w.stays_away() || !ServerPairs(life_).is_moving(w))
      continue;
    // The second process may be on its way out as well, and one of the two must stay.
    const WorkerProcess& second = *ServerPairs(life_).second_of(w);
    if (second.running() && !second.stays_away()) {
      leave_for_second(w, "another process takes over");
    }
  }
}

// One of the two processes has failed, and the other one is enough.
bool ServerMoves::move_failed(WorkerProcess& server, FailureClass cls) {
  if (!ServerPairs(life_).is_moving(server)) return false;
  const WorkerProcess& second = *ServerPairs(life_).second_of(server);
  if (!second.running() || second.leaving()) return false;
  turn_.failing.record_failure(server, cls);
  std::ignore = life_.incidents.take_budget(cls);
  life_.hosts.failed_on(server.place.host, life_.seconds());
  server.remove();
  out_.emplace_back(WriteNote{
      "move",
      fmt::format(
          "{} is lost while {}; it is not started again", server.place.worker,
          server.moves_in()
              ? fmt::format("it was to take over from {}, which goes on", second.place.worker)
              : fmt::format("{} was to take over from it, and does", second.place.worker))});
  out_.emplace_back(PersistImage{});
  turn_.starts.expect();
  return true;
}

}  // namespace antdt::ctl::lifecycle
