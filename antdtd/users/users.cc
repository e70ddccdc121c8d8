#include "antdtd/users/users.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/threads/blocked_signals.h"

namespace antdt::antdtd {
namespace {

// So a key that is removed is refused within a second.
constexpr int kLookEveryMs = 500;
// The groups of users may change without a change of the keys.
constexpr Duration kAskSystemAgain = std::chrono::seconds(10);
// The name that antdt keygen gave to a job's key before keys named users.
constexpr const char* kNameless = "job";

bool serves_every_user(const UserPolicy& policy) { return policy.own.uid == 0; }

// The user name to look up; an error if the key names no user.
Result<std::string> user_of(const transport::AuthorizedKey& key, const UserPolicy& policy) {
  if (key.says_user || key.name != kNameless) return key.user;
  if (!serves_every_user(policy) || policy.allow_root) return policy.own.name;
  return fail(
      ErrorKind::kRefused,
      "authorized/{}.pub of this agent does not say whose key it is: rename it to USER.pub, "
      "or write the line 'user = USER' into it",
      key.name);
}

}  // namespace

Result<UserIdentity> served_as(const transport::AuthorizedKey& key, const UserPolicy& policy,
                               const UserLookup& lookup) {
  ANTDT_TRY(const std::string name, user_of(key, policy));
  if (name == policy.own.name && !serves_every_user(policy)) return policy.own;
  if (!serves_every_user(policy)) {
    return fail(ErrorKind::kRefused,
                "the key {} is that of the user '{}', and this agent runs as '{}' and can start "
                "processes as that user only: run antdtd as root, as its systemd unit does, and it "
                "starts each job as its own user; or start an agent as '{}' on another port",
                key.name, name, policy.own.name, name);
  }
  Result<UserIdentity> user = lookup(name);
  if (!user) {
    return fail(
        ErrorKind::kRefused,
        "the key {} is that of the user '{}', and {}: make that user on this host, or write "
        "the line 'user = USER' into authorized/{}.pub",
        key.name, name, user.error().message, key.name);
  }
  if (user->uid == 0 && !policy.allow_root) {
    return fail(ErrorKind::kRefused,
                "the key {} is that of root, and this agent starts nothing as root: use the key of "
                "another user, or start antdtd with --allow-root",
                key.name);
  }
  if (!user->is_own() && !policy.unreachable.empty()) {
    return fail(ErrorKind::kRefused, "processes of the user '{}' cannot work under this agent: {}",
                name, policy.unreachable);
  }
  return user;
}

Users::Users(EventLoop& loop, std::string authorized_dir, UserPolicy policy)
    : loop_(loop),
      keys_(std::move(authorized_dir)),
      policy_(std::move(policy)),
      changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  table_ = std::make_shared<const Table>(read(keys_.all()));
  loop_.watch_fd(changed_.get(), [this] {
    eventfd_t ignored = 0;
    eventfd_read(changed_.get(), &ignored);
    if (on_change_) on_change_();
  });
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

Users::~Users() {
  eventfd_write(end_.get(), 1);
  thread_.join();
  loop_.unwatch_fd(changed_.get());
}

Users::Table Users::read(const std::map<std::string, transport::AuthorizedKey>& keys) const {
  Table table;
  for (const auto& [z85, key] : keys) {
    Result<UserIdentity> user = served_as(key, policy_, find_user);
    if (!user) {
      table.emplace(z85, tl::unexpected(std::move(user).error()));
      continue;
    }
    const bool admin = is_member(*user, kAdminGroup);
    table.emplace(z85, KnownUser{key.name, std::move(*user), admin});
  }
  return table;
}

bool Users::wait() {
  pollfd item{end_.get(), POLLIN, 0};
  return poll(&item, 1, kLookEveryMs) <= 0;
}

void Users::watch() {
  const SteadyClock clock;
  MonoTime asked = clock.now();
  std::map<std::string, transport::AuthorizedKey> seen;
  bool first = true;
  while (wait()) {
    const auto& keys = keys_.all();
    const bool same = !first && keys == seen;
    if (same && clock.now() - asked < kAskSystemAgain) continue;
    first = false;
    seen = keys;
    asked = clock.now();
    auto table = std::make_shared<const Table>(read(keys));
    {
      const std::lock_guard lock(mutex_);
      table_ = std::move(table);
    }
    if (!same) eventfd_write(changed_.get(), 1);
  }
}

std::shared_ptr<const Users::Table> Users::table() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

bool Users::is_authorized(const std::string& public_z85) const {
  return table()->contains(public_z85);
}

Result<KnownUser> Users::find(const std::string& public_z85) const {
  const auto known = table();
  const auto found = known->find(public_z85);
  if (found != known->end()) return found->second;
  return fail(
      ErrorKind::kUnreachable,
      "the key is not authorized on this agent any more: its file in authorized/ was removed "
      "or replaced, or cannot be read (the agent's log then says why)");
}

}  // namespace antdt::antdtd
