// The system's users: owners of jobs, as whom processes run.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt {

// What is needed to start a process as a user: the user's entry in the system's database, and all
// groups.
struct UserIdentity {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // the supplementary groups, including `gid`
  std::string home;
  std::string shell;

  // Whether this process has that user's rights already, so that nothing needs to change.
  [[nodiscard]] bool is_own() const;
};

// All functions here ask the system's user database, which may be a slow directory service, so the
// thread of a loop must not call them. kUsage if there is no such user.
[[nodiscard]] Result<UserIdentity> find_user(const std::string& name);
// The user as whom this process runs. A user without an entry in the database is named by the uid.
[[nodiscard]] UserIdentity own_user();

// For people: the uid if there is no entry.
[[nodiscard]] std::string user_name(uid_t uid);

// Whether `user` is a member of the group of that name; false if there is no such group.
[[nodiscard]] bool is_member(const UserIdentity& user, const std::string& group);

}  // namespace antdt
