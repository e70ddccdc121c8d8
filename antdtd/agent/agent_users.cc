// Whose the jobs of an agent are, and the sockets by which the workers of each user reach it.
#include "antdtd/agent/agent.h"
#include "core/log/log.h"

namespace antdt::antdtd {

const UserIdentity& Agent::owner_of(const std::string& job) const {
  const auto found = owners_.find(job);
  return found == owners_.end() ? own_ : found->second;
}

// A user who is gone, or has another number now, keeps what its processes were started with:
// they are still to be ended.
void Agent::adopt_owner(const std::string& job, const JobRecord& record) {
  if (!record.uid || *record.uid == own_.uid) return;
  UserIdentity owner;
  owner.name = record.user;
  owner.uid = *record.uid;
  owner.gid = record.gid.value_or(*record.uid);
  owner.groups = {owner.gid};
  owner.home = "/";
  const Result<UserIdentity> known = find_user(record.user);
  if (known && known->uid == owner.uid) owner = *known;
  owners_[job] = owner;
  const Status opened = open_workers_socket(owner);
  if (!opened) log_error("{}", opened.error().message);
}

WorkerLinks& Agent::make_links(transport::Socket socket, uid_t user) {
  auto links = std::make_unique<WorkerLinks>(
      std::move(socket), options_.host, supervision_,
      WorkerLinks::Handlers{
          [this](const ProcessKey& key, const wire::Report& report) { on_report(key, report); },
          [this](const std::string& job, wire::Packet packet) {
            daemons_->send(job, std::move(packet));
          },
          [this, user](const std::string& job) { return owner_of(job).uid == user; }});
  WorkerLinks& made = *links;
  workers_[user] = std::move(links);
  loop_.watch_socket(made.socket(), [&made] { made.receive(kBatch); });
  return made;
}

Status Agent::open_workers_socket(const UserIdentity& user) {
  if (workers_.contains(user.uid)) return {};
  if (socket_of_ == nullptr) {
    return fail(ErrorKind::kInternal, "this agent has no sockets for the user {}", user.name);
  }
  ANTDT_TRY(transport::Socket socket, socket_of_(user));
  [[maybe_unused]] const WorkerLinks& made = make_links(std::move(socket), user.uid);
  return {};
}

WorkerLinks* Agent::workers_of(const std::string& job) {
  const auto found = workers_.find(owner_of(job).uid);
  return found == workers_.end() ? nullptr : found->second.get();
}

}  // namespace antdt::antdtd
