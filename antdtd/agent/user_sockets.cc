#include "antdtd/agent/user_sockets.h"

#include <utility>

#include "core/log/log.h"

namespace antdt::antdtd {

UserSockets::UserSockets(EventLoop& loop, std::string host, const Supervision& supervision,
                         SocketOf socket_of, Handlers handlers, transport::Socket own)
    : loop_(loop),
      host_(std::move(host)),
      supervision_(supervision),
      socket_of_(std::move(socket_of)),
      handlers_(std::move(handlers)) {
  add(std::move(own), own_.uid);
}

UserSockets::~UserSockets() {
  for (const auto& [user, links] : workers_) loop_.unwatch_socket(links->socket());
}

const UserIdentity& UserSockets::owner_of(const std::string& job) const {
  const auto found = owners_.find(job);
  return found == owners_.end() ? own_ : found->second;
}

void UserSockets::set_owner(const std::string& job, const UserIdentity& user) {
  if (!user.is_own()) owners_[job] = user;
}

void UserSockets::adopt_owner(const std::string& job, const JobRecord& record) {
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
  const Status opened = open(owner);
  if (!opened) log_error("{}", opened.error().message);
}

Status UserSockets::open(const UserIdentity& user) {
  if (workers_.contains(user.uid)) return {};
  if (socket_of_ == nullptr) {
    return fail(ErrorKind::kInternal, "this agent has no sockets for the user {}", user.name);
  }
  ANTDT_TRY(transport::Socket socket, socket_of_(user));
  add(std::move(socket), user.uid);
  return {};
}

void UserSockets::add(transport::Socket socket, uid_t user) {
  auto links = std::make_unique<WorkerLinks>(
      std::move(socket), host_, supervision_,
      WorkerLinks::Handlers{
          handlers_.on_report, handlers_.on_relay,
          [this, user](const std::string& job) { return owner_of(job).uid == user; }});
  WorkerLinks& made = *links;
  workers_[user] = std::move(links);
  loop_.watch_socket(made.socket(), [&made] { made.receive(kBatch); });
}

WorkerLinks* UserSockets::of(const std::string& job) {
  const auto found = workers_.find(owner_of(job).uid);
  return found == workers_.end() ? nullptr : found->second.get();
}

bool UserSockets::flush() {
  bool left = false;
  for (const auto& [user, links] : workers_) left = links->flush() || left;
  return left;
}

}  // namespace antdt::antdtd
