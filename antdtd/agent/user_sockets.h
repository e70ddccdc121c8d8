// The user of each job, and the sockets over which the workers of each user reach the agent.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "antdtd/agent/worker_links.h"
#include "antdtd/processes/process_store.h"
#include "antdtd/users/users.h"
#include "core/loop.h"

namespace antdt::antdtd {

class UserSockets {
 public:
  // Makes the socket for the workers of another user.
  using SocketOf = std::function<Result<transport::Socket>(const UserIdentity&)>;
  struct Handlers {
    std::function<void(const ProcessKey&, const wire::Report&)> on_report;
    std::function<void(const std::string& job, wire::Packet)> on_relay;
  };
  // `own` is the socket of the agent's own user.
  UserSockets(EventLoop& loop, std::string host, const Supervision& supervision, SocketOf socket_of,
              Handlers handlers, transport::Socket own);
  ~UserSockets();
  UserSockets(const UserSockets&) = delete;
  UserSockets& operator=(const UserSockets&) = delete;

  [[nodiscard]] const UserIdentity& own() const { return own_; }
  // The user as whom the processes of the job run.
  [[nodiscard]] const UserIdentity& owner_of(const std::string& job) const;
  void set_owner(const std::string& job, const UserIdentity& user);
  // If the user does not exist any more, or has another uid now, the processes keep the identity
  // with which they were started; they must still be ended.
  void adopt_owner(const std::string& job, const JobRecord& record);
  void forget(const std::string& job) { owners_.erase(job); }

  [[nodiscard]] Status open(const UserIdentity& user);
  // The socket of the job's workers; null if it could not be opened.
  [[nodiscard]] WorkerLinks* of(const std::string& job);
  // Sends again what slow workers could not receive. Returns whether some messages are left.
  [[nodiscard]] bool flush();

  // How many messages of one socket are handled in a turn, so that no side starves another.
  static constexpr int kBatch = 512;

 private:
  void add(transport::Socket socket, uid_t user);

  EventLoop& loop_;
  const std::string host_;
  const Supervision& supervision_;
  SocketOf socket_of_;
  Handlers handlers_;
  const UserIdentity own_ = own_user();
  std::map<std::string, UserIdentity> owners_;             // owners of jobs of other users
  std::map<uid_t, std::unique_ptr<WorkerLinks>> workers_;  // by uid
};

}  // namespace antdt::antdtd
