// Who may use this agent, and as which user their processes run.
//
// A key names a user (core/transport/keys.h). An agent of root starts the processes of a job as the
// user whose key the job came with. Any other agent starts them as its own user, and therefore
// serves only that user.
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

// Members of this group may stop jobs of others and evict their workers.
inline constexpr const char* kAdminGroup = "antdt-admin";

// The settings that decide whom an agent serves.
struct UserPolicy {
  UserIdentity own;         // the user as whom the agent runs
  bool allow_root = false;  // whether jobs of root are served, too
  // Why processes of another user could not work here, such as a socket directory that others
  // cannot enter; "" if they can.
  std::string unreachable;
};

struct KnownUser {
  std::string key;        // name of the key's file
  UserIdentity identity;  // the user as whom processes are started
  bool admin = false;
};

// Looks a user up in the system (find_user); tests pass a function of their own.
using UserLookup = std::function<Result<UserIdentity>(const std::string& name)>;

// The user as whom the owner of `key` is served; otherwise kRefused, with the reason and how to
// mend it.
[[nodiscard]] Result<UserIdentity> served_as(const transport::AuthorizedKey& key,
                                             const UserPolicy& policy, const UserLookup& lookup);

// The keys of a directory and their users. A thread of this object reads the directory and the
// system's user database every half second, so that neither can block the loop; lookups use memory
// only.
class Users {
 public:
  Users(EventLoop& loop, std::string authorized_dir, UserPolicy policy);
  ~Users();
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  // `call` is called from the loop after a key was added, removed or changed.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }

  // Whether the key may connect now. A key whose user is not served may connect, too, and is then
  // told why.
  [[nodiscard]] bool is_authorized(const std::string& public_z85) const;
  // kUnreachable: the key is not authorized (any more); kRefused: see served_as.
  [[nodiscard]] Result<KnownUser> find(const std::string& public_z85) const;
  [[nodiscard]] const UserPolicy& policy() const { return policy_; }

 private:
  using Table = std::map<std::string, Result<KnownUser>>;
  void watch();
  [[nodiscard]] bool wait();  // false: the thread is to end
  [[nodiscard]] std::shared_ptr<const Table> table() const;
  [[nodiscard]] Table read(const std::map<std::string, transport::AuthorizedKey>& keys) const;

  EventLoop& loop_;
  transport::AuthorizedKeys keys_;  // used by the thread once that runs
  const UserPolicy policy_;
  std::function<void()> on_change_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Table> table_;
  OwnedFd changed_;  // eventfd: the thread wrote a new table
  OwnedFd end_;      // eventfd: the thread is to end
  std::thread thread_;
};

}  // namespace antdt::antdtd
