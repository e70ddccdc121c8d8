#include "core/os/user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace antdt {
namespace {

constexpr std::size_t kFirstBuffer = 4096;
constexpr std::size_t kLargestBuffer = std::size_t{16} * 1024 * 1024;

// Calls a getpwnam_r-like function with growing buffers until the answer fits. Returns its error
// number.
template <class Call>
int with_buffer(std::vector<char>& buffer, Call&& call) {
  int error = ERANGE;
  for (std::size_t size = kFirstBuffer; error == ERANGE && size <= kLargestBuffer; size *= 4) {
    buffer.resize(size);
    error = call(buffer.data(), buffer.size());
  }
  return error;
}

std::vector<gid_t> groups_of(const std::string& name, gid_t gid) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (getgrouplist(name.c_str(), gid, groups.data(), &count) < 0) {
    // The call returns the number that it needs. If the database changes meanwhile, it is asked
    // again.
    groups.resize(std::max(static_cast<std::size_t>(count), groups.size() * 2));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

UserIdentity identity_of(const passwd& line) {
  UserIdentity user;
  user.name = line.pw_name;
  user.uid = line.pw_uid;
  user.gid = line.pw_gid;
  user.home = line.pw_dir;
  user.shell = line.pw_shell;
  user.groups = groups_of(user.name, user.gid);
  return user;
}

}  // namespace

bool UserIdentity::is_own() const { return uid == geteuid(); }

Result<UserIdentity> find_user(const std::string& name) {
  std::vector<char> buffer;
  passwd line{};
  passwd* found = nullptr;
  const int error = with_buffer(buffer, [&](char* data, std::size_t size) {
    return getpwnam_r(name.c_str(), &line, data, size, &found);
  });
  if (found != nullptr) return identity_of(line);
  if (error != 0 && error != ENOENT && error != ESRCH) {
    return fail_errno(ErrorKind::kIo, error, "looking for the user " + name);
  }
  return fail(ErrorKind::kUsage, "this host has no user '{}' (getent passwd {})", name, name);
}

UserIdentity own_user() {
  std::vector<char> buffer;
  passwd line{};
  passwd* found = nullptr;
  with_buffer(buffer, [&](char* data, std::size_t size) {
    return getpwuid_r(geteuid(), &line, data, size, &found);
  });
  if (found != nullptr) return identity_of(line);
  UserIdentity user;
  user.name = fmt::to_string(geteuid());
  user.uid = geteuid();
  user.gid = getegid();
  user.groups = {user.gid};
  user.home = "/";
  user.shell = "/bin/sh";
  return user;
}

std::string user_name(uid_t uid) {
  std::vector<char> buffer;
  passwd line{};
  passwd* found = nullptr;
  with_buffer(buffer, [&](char* data, std::size_t size) {
    return getpwuid_r(uid, &line, data, size, &found);
  });
  return found != nullptr ? found->pw_name : fmt::format("uid {}", uid);
}

bool is_member(const UserIdentity& user, const std::string& group) {
  std::vector<char> buffer;
  ::group line{};
  ::group* found = nullptr;
  with_buffer(buffer, [&](char* data, std::size_t size) {
    return getgrnam_r(group.c_str(), &line, data, size, &found);
  });
  return found != nullptr &&
         std::find(user.groups.begin(), user.groups.end(), line.gr_gid) != user.groups.end();
}

}  // namespace antdt
