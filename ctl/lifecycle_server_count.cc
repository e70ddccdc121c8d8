// How many parameter servers there are, and how they become more or fewer: those that come are
// started beside the group that serves; when they have joined, a checkpoint is ordered that is
// the last of that group (server_group.h), and from it the group of the next size begins. Then
// those that are not of it are asked to leave. Whatever goes wrong before leaves the group as it
// is, and the change is tried again, or given up.
#include <algorithm>
#include <utility>

#include "core/model_slices.h"
#include "ctl/lifecycle.h"

namespace antdt::ctl {
namespace {

constexpr std::uint32_t kTries = 5;
constexpr Duration kTryAgain = std::chrono::seconds(2);
// Nothing is trained meanwhile.
constexpr Duration kLastCutPatience = std::chrono::minutes(5);

}  // namespace

std::uint32_t Lifecycle::servers() const {
  return image_.servers > 0 ? image_.servers : spec_.servers;
}

// Of each server the process, or the two, that it is when there are so many.
std::vector<WorkerId> Lifecycle::processes_of(std::uint32_t count) const {
  const auto runs = [&](WorkerId id) {
    const WorkerProcess* const w = find(id);
    return w != nullptr && w->state != WorkerProcess::kRemoved && !w->stays_away;
  };
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) {
    const WorkerId first{'s', i};
    const WorkerId second{'s', i + count};
    const bool both = spec_.server_replicas > 1;
    if (both || runs(first) || !runs(second)) ids.push_back(first);
    if (both || (!runs(first) && runs(second))) ids.push_back(second);
  }
  return ids;
}

Status Lifecycle::check(const job::ServersAsked& e) const {
  if (stopping()) return antdt::fail(ErrorKind::kRefused, "the job is stopping");
  if (spec_.servers == 0) {
    return antdt::fail(ErrorKind::kUsage,
                       "this job has no parameter servers, its workers hold the model: antdt "
                       "resize JOB N changes how many these are");
  }
  if (e.count == 0 || e.count > kModelSlices) {
    return antdt::fail(ErrorKind::kUsage,
                       "{} servers are impossible: 1 to {} are, as the model has {} slices",
                       e.count, kModelSlices, kModelSlices);
  }
  if (image_.servers_wanted > 0) {
    if (e.count == servers()) return {};  // that gives it up
    return antdt::fail(ErrorKind::kRefused,
                       "the servers become {} already: wait until they are, or give that up with "
                       "antdt resize JOB {} --role server",
                       image_.servers_wanted, servers());
  }
  if (state() == JobState::kFinishing) {
    return antdt::fail(ErrorKind::kRefused, "all is trained, the job is about to end");
  }
  for (const WorkerProcess& w : image_.workers) {
    if (!w.is_server() || w.state == WorkerProcess::kRemoved) continue;
    if (!w.leaving && !w.apart && !is_moving(w)) continue;
    return antdt::fail(ErrorKind::kRefused, "{} is about to leave, or to be moved: try again soon",
                       w.place.worker);
  }
  const auto added = added_for(e.count);
  const std::uint32_t room = hosts_.room_left(image_.workers);
  if (added.size() > room) {
    return antdt::fail(ErrorKind::kRefused,
                       "{} servers need {} more processes, and the hosts have room for {}: let "
                       "workers leave (antdt resize JOB N), or add hosts",
                       e.count, added.size(), room);
  }
  return {};
}

std::vector<WorkerId> Lifecycle::added_for(std::uint32_t count) const {
  std::vector<WorkerId> ids = processes_of(count);
  std::erase_if(ids, [&](WorkerId id) {
    const WorkerProcess* const w = find(id);
    return w != nullptr && w->state != WorkerProcess::kRemoved;
  });
  return ids;
}

void Lifecycle::on(const job::ServersAsked& e, Effects& out) {
  if (!check(e)) return;
  if (e.count == servers()) return give_up_servers(e.reason, out);
  image_.servers_wanted = e.count;
  image_.servers_failed = 0;
  servers_failed_at_.reset();
  out.emplace_back(job::Note{
      "resize", fmt::format("from {} to {} parameter servers: {}", servers(), e.count, e.reason)});
  for (const WorkerId id : added_for(e.count)) {
    const auto gone = std::ranges::find(image_.workers, id,
                                        [](const WorkerProcess& w) { return w.place.worker; });
    WorkerProcess next;
    next.place.worker = id;
    next.attempt = gone == image_.workers.end() ? Attempt{1} : gone->attempt.next();
    next.state = WorkerProcess::kWaiting;
    next.apart = true;
    if (gone != image_.workers.end()) {
      next.place = gone->place;
      *gone = std::move(next);
    } else {
      image_.workers.push_back(std::move(next));
    }
  }
  out.emplace_back(job::SaveImage{});
  start_waiting(out);
  order_last_cut(out);
}

// When those that come are there, and training is what the group does.
void Lifecycle::order_last_cut(Effects& out) {
  if (image_.servers_wanted == 0 || image_.last_cut > 0 || stopping()) return;
  if (state() == JobState::kFinishing) return give_up_servers("all is trained", out);
  const bool all_here = std::ranges::all_of(image_.workers, [](const WorkerProcess& w) {
    return !w.apart || w.state == WorkerProcess::kJoined || w.state == WorkerProcess::kRemoved;
  });
  const bool too_soon = servers_failed_at_ && now_ - *servers_failed_at_ < kTryAgain;
  if (!all_here || too_soon || !settled_ || image_.checkpoint_pending) return;
  if (state() != JobState::kTraining) return;
  image_.last_cut = image_.checkpoints_ordered + 1;
  out.emplace_back(job::Note{
      "last-cut", fmt::format("checkpoint {} is the last on {} servers: what is pushed behind it "
                              "waits for {} servers",
                              image_.last_cut, servers(), image_.servers_wanted)});
  order_checkpoint(out);
}

void Lifecycle::look_at_last_cut(Effects& out) {
  if (image_.last_cut > 0 && now_ - std::max(last_checkpoint_, files_moved_) >= kLastCutPatience) {
    last_cut_failed("its last checkpoint takes too long", out);
  }
  order_last_cut(out);
}

// True: it is what the change waited for.
bool Lifecycle::is_last_cut(const job::CheckpointStored& e, Effects& out) {
  if (image_.last_cut == 0 || e.number != image_.last_cut) return false;
  if (!e.error.empty()) {
    last_cut_failed(e.error, out);
    return false;
  }
  image_.last_cut = 0;
  return true;
}

void Lifecycle::last_cut_failed(const std::string& why, Effects& out) {
  image_.last_cut = 0;
  image_.checkpoint_pending = false;
  out.emplace_back(job::ServersGoOn{});
  server_change_failed(why, out);
  advance_if_complete(out);
}

void Lifecycle::server_change_failed(const std::string& why, Effects& out) {
  servers_failed_at_ = now_;
  out.emplace_back(job::SaveImage{});
  if (++image_.servers_failed >= kTries) return give_up_servers(why, out);
  out.emplace_back(
      job::Note{"resize", fmt::format("the servers cannot become {} yet, it is tried again: {}",
                                      image_.servers_wanted, why)});
}

// The group of before goes on as it is.
void Lifecycle::give_up_servers(const std::string& why, Effects& out) {
  if (std::exchange(image_.servers_wanted, 0) == 0) return;
  out.emplace_back(
      job::Note{"resize", fmt::format("the job keeps its {} servers: {}", servers(), why)});
  if (std::exchange(image_.last_cut, 0) > 0) {
    image_.checkpoint_pending = false;
    out.emplace_back(job::ServersGoOn{});
  }
  let_apart_go("the job keeps the servers that it has", out);
  advance_if_complete(out);
}

void Lifecycle::change_servers(Effects& out) {
  const std::uint32_t before = servers();
  const std::vector<WorkerId> stay = processes_of(image_.servers_wanted);
  image_.servers = std::exchange(image_.servers_wanted, 0);
  for (WorkerProcess& w : image_.workers) {
    if (w.is_server()) w.apart = std::ranges::find(stay, w.place.worker) == stay.end();
  }
  out.emplace_back(job::Note{
      "resized",
      fmt::format("the model is placed on {} servers from now on, {} before", servers(), before)});
  out.emplace_back(job::ServersChange{servers()});
  let_apart_go("there are fewer servers", out);
}

void Lifecycle::let_apart_go(const std::string& reason, Effects& out) {
  for (WorkerProcess& w : image_.workers) {
    if (!w.apart || w.state == WorkerProcess::kRemoved) continue;
    w.stays_away = true;
    if (!w.running()) w.state = WorkerProcess::kRemoved;
  }
  out.emplace_back(job::SaveImage{});
  expect(out);
  for (WorkerProcess& w : image_.workers) {
    if (w.apart && w.running()) ask_to_leave(w, reason, spec_.stop_grace, out);
  }
}

// Nothing of the group before is left that would have to make a last checkpoint.
void Lifecycle::change_servers_at_resume(Effects& out) {
  image_.last_cut = 0;
  if (image_.servers_wanted > 0) change_servers(out);
}

// One of the next size, before it is of any use: the job is none the worse.
void Lifecycle::added_failed(WorkerProcess& server, FailureClass cls, Effects& out) {
  record_failure(server, cls);
  hosts_.failed_on(server.place.host, seconds());
  const std::string cause = image_.failures.back().cause;
  if (server.stays_away || image_.servers_wanted == 0) {
    server.state = WorkerProcess::kRemoved;
    return expect(out);
  }
  wait_for_place(server);
  image_.last_cut > 0 ? last_cut_failed(cause, out) : server_change_failed(cause, out);
  start_waiting(out);
  expect(out);
}

}  // namespace antdt::ctl
