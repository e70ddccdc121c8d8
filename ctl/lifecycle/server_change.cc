// How the number of parameter servers changes. Additional servers are started beside the group that
// serves. When they have joined, a checkpoint is ordered that is the last of that group
// (server_group.h), and the group of the new size begins from it. Then the servers that are not in
// it are asked to leave. If something goes wrong before that, the group stays as it is, and the
// change is tried again, or given up.
#include <algorithm>
#include <utility>

#include "core/checkpoint/model_slices.h"
#include "ctl/lifecycle/possible.h"
#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {
namespace {

using Standing = WorkerProcess::Standing;

constexpr std::uint32_t kTries = 5;
constexpr Duration kTryAgain = std::chrono::seconds(2);
// Nothing is trained meanwhile.
constexpr Duration kLastCutPatience = std::chrono::minutes(5);

}  // namespace

void ServerChange::on(const ServerCountRequested& e) {
  if (!Possible(life_).check(e)) return;
  if (e.count == life_.servers()) return give_up_servers(e.reason);
  life_.image.servers_wanted = e.count;
  life_.image.servers_failed = 0;
  life_.servers_failed_at.reset();
  out_.emplace_back(WriteNote{"resize", fmt::format("from {} to {} parameter servers: {}",
                                                    life_.servers(), e.count, e.reason)});
  for (const WorkerId id : ServerPairs(life_).added_for(e.count)) {
    const auto gone =
        std::ranges::find(life_.workers, id, [](const WorkerProcess& w) { return w.place.worker; });
    if (gone != life_.workers.end()) {
      *gone = WorkerProcess::wait(gone->place, gone->attempt.next(), Standing::kApart);
    } else {
      life_.workers.push_back(WorkerProcess::wait({id, "", 0}, Attempt{1}, Standing::kApart));
    }
  }
  out_.emplace_back(PersistImage{});
  turn_.starts.start_waiting();
  order_last_cut();
}

// Waits until the additional servers have joined, and until the group trains.
void ServerChange::order_last_cut() {
  if (life_.image.servers_wanted == 0 || life_.image.last_cut > 0 || life_.stopping()) return;
  if (life_.state() == JobState::kFinishing) return give_up_servers("all is trained");
  const bool all_here = std::ranges::all_of(life_.workers, [](const WorkerProcess& w) {
    return !w.apart() || w.state == WorkerProcess::kJoined || w.state == WorkerProcess::kRemoved;
  });
  const bool too_soon = life_.servers_failed_at && life_.now - *life_.servers_failed_at < kTryAgain;
  if (!all_here || too_soon || !life_.phases.settled() || life_.checkpoints.pending()) return;
  if (life_.state() != JobState::kTraining) return;
  life_.image.last_cut = life_.checkpoints.ordered() + 1;
  out_.emplace_back(WriteNote{
      "last-cut",
      fmt::format(
          "checkpoint {} is the last on {} servers: what is pushed behind it waits for {} servers",
          life_.image.last_cut, life_.servers(), life_.image.servers_wanted)});
  turn_.training.order_checkpoint();
}

void ServerChange::look_at_last_cut() {
  if (life_.image.last_cut > 0 && life_.checkpoints.quiet_for(life_.now) >= kLastCutPatience) {
    last_cut_failed("its last checkpoint takes too long");
  }
  order_last_cut();
}

// True if it is the checkpoint for which the change waited.
bool ServerChange::is_last_cut(const CheckpointConcluded& e) {
  if (life_.image.last_cut == 0 || e.number != life_.image.last_cut) return false;
  if (!e.error.empty()) {
    last_cut_failed(e.error);
    return false;
  }
  life_.image.last_cut = 0;
  return true;
}

void ServerChange::last_cut_failed(const std::string& why) {
  life_.image.last_cut = 0;
  life_.checkpoints.give_up();
  out_.emplace_back(KeepServers{});
  server_change_failed(why);
  turn_.training.advance_if_complete();
}

void ServerChange::server_change_failed(const std::string& why) {
  life_.servers_failed_at = life_.now;
  out_.emplace_back(PersistImage{});
  if (++life_.image.servers_failed >= kTries) return give_up_servers(why);
  out_.emplace_back(
      WriteNote{"resize", fmt::format("the servers cannot become {} yet, it is tried again: {}",
                                      life_.image.servers_wanted, why)});
}

// The old group goes on as it is.
void ServerChange::give_up_servers(const std::string& why) {
  if (std::exchange(life_.image.servers_wanted, 0) == 0) return;
  out_.emplace_back(
      WriteNote{"resize", fmt::format("the job keeps its {} servers: {}", life_.servers(), why)});
  if (std::exchange(life_.image.last_cut, 0) > 0) {
    life_.checkpoints.give_up();
    out_.emplace_back(KeepServers{});
  }
  let_apart_go("the job keeps the servers that it has");
  turn_.training.advance_if_complete();
}

void ServerChange::change_servers() {
  const std::uint32_t before = life_.servers();
  const std::vector<WorkerId> stay = ServerPairs(life_).processes_of(life_.image.servers_wanted);
  life_.image.servers = std::exchange(life_.image.servers_wanted, 0);
  for (WorkerProcess& w : life_.workers) {
    if (!w.is_server()) continue;
    const bool stays = std::ranges::find(stay, w.place.worker) != stay.end();
    if (!stays) w.standing = Standing::kApart;
    if (stays && w.apart()) w.standing = Standing::kOfGroup;
  }
  out_.emplace_back(
      WriteNote{"resized", fmt::format("the model is placed on {} servers from now on, {} before",
                                       life_.servers(), before)});
  out_.emplace_back(ChangeServers{life_.servers()});
  let_apart_go("there are fewer servers");
}

void ServerChange::let_apart_go(const std::string& reason) {
  for (WorkerProcess& w : life_.workers) {
    if (!w.apart() || w.state == WorkerProcess::kRemoved) continue;
    w.after = WorkerProcess::After::kStaysAway;
    if (!w.running()) w.remove();
  }
  out_.emplace_back(PersistImage{});
  turn_.starts.expect();
  for (WorkerProcess& w : life_.workers) {
    if (w.apart() && w.running()) turn_.wishes.ask_to_leave(w, reason, life_.spec.stop_grace);
  }
}

// Nothing is left of the old group that would have to make a last checkpoint.
void ServerChange::change_servers_at_resume() {
  life_.image.last_cut = 0;
  if (life_.image.servers_wanted > 0) change_servers();
}

// A server of the next size failed before it was of use. The job loses nothing.
void ServerChange::added_failed(WorkerProcess& server, FailureClass cls) {
  turn_.failing.record_failure(server, cls);
  life_.hosts.failed_on(server.place.host, life_.seconds());
  const std::string cause = life_.incidents.failures().back().cause;
  if (server.stays_away() || life_.image.servers_wanted == 0) {
    server.remove();
    return turn_.starts.expect();
  }
  server.begin_again(life_.seconds());
  life_.image.last_cut > 0 ? last_cut_failed(cause) : server_change_failed(cause);
  turn_.starts.start_waiting();
  turn_.starts.expect();
}

}  // namespace antdt::ctl::lifecycle
