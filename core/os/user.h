// The system's users: who owns a job, and as whom its processes run.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt {

// What is needed to start a process as a user: its line in the system's user database and
// all of its groups.
struct UserIdentity {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // the supplementary ones, `gid` among them
  std::string home;
  std::string shell;

  // Whether this process has that user's rights already, so that nothing is to be changed.
  [[nodiscard]] bool is_own() const;
};

// Both ask the system's user database, which may be a directory service that answers slowly:
// not for the thread of a loop that others wait for. kUsage if there is no such user.
[[nodiscard]] Result<UserIdentity> find_user(const std::string& name);
// The user that this process runs as. One without a line in the database is named by its
// number.
[[nodiscard]] UserIdentity own_user();

// Whether `user` is a member of the group of that name; false where there is no such group.
[[nodiscard]] bool is_member(const UserIdentity& user, const std::string& group);

}  // namespace antdt
