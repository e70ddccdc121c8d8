// Who may use this agent, and as whom their processes run.
//
// A key names a user (core/transport/keys.h). An agent of root starts the processes of a
// job as the user whose key the job came with; any other agent starts them as itself, and
// therefore serves its own user alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/loop.h"
#include "core/os/owned_fd.h"
#include "core/os/user.h"
#include "core/result.h"
#include "core/transport/keys.h"

namespace antdt::antdtd {

// Members of it may stop and evict the jobs of others.
inline constexpr const char* kAdminGroup = "antdt-admin";

// What decides whom an agent serves.
struct UserPolicy {
  UserIdentity own;         // as whom the agent runs
  bool allow_root = false;  // jobs of root are served, too
  // Why processes of another user could not work here, such as a socket directory that
  // others cannot enter; "" if they can.
  std::string unreachable;
};

struct KnownUser {
  std::string key;        // the name of the key's file
  UserIdentity identity;  // as whom processes are started
  bool admin = false;
};

// Asks the system for a user (find_user); tests answer themselves.
using UserLookup = std::function<Result<UserIdentity>(const std::string& name)>;

// As whom the owner of `key` is served, or why not and how to mend it (kRefused).
[[nodiscard]] Result<UserIdentity> served_as(const transport::AuthorizedKey& key,
                                             const UserPolicy& policy, const UserLookup& lookup);

// The keys of a directory and their users. The directory and the system's user database are
// read by a thread of this object, every half second, so that neither can hold up the
// loop; what they say is looked up in memory.
class Users {
 public:
  Users(EventLoop& loop, std::string authorized_dir, UserPolicy policy);
  ~Users();
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  // `call` is called from the loop after a key came, went or changed.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }

  // Whether the key may connect now. It may, too, if its user is not served: it is then
  // told why.
  [[nodiscard]] bool is_authorized(const std::string& public_z85) const;
  // kUnreachable: the key is not authorized (any more); kRefused: see served_as.
  [[nodiscard]] Result<KnownUser> find(const std::string& public_z85) const;
  [[nodiscard]] const UserPolicy& policy() const { return policy_; }

 private:
  using Table = std::map<std::string, Result<KnownUser>>;
  void watch();
  [[nodiscard]] bool wait();  // false: end
  [[nodiscard]] std::shared_ptr<const Table> table() const;
  [[nodiscard]] Table read(const std::map<std::string, transport::AuthorizedKey>& keys) const;

  EventLoop& loop_;
  transport::AuthorizedKeys keys_;  // of the thread, once that runs
  const UserPolicy policy_;
  std::function<void()> on_change_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Table> table_;
  OwnedFd changed_;  // eventfd: the thread wrote another table
  OwnedFd end_;      // eventfd: the thread is to end
  std::thread thread_;
};

}  // namespace antdt::antdtd
