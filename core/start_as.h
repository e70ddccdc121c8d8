// Starting a program as a user: the one place where rights are given up.
//
// The child has exactly the descriptors that it is given, the user's groups, a umask of
// 077, no capability, no way to gain rights by executing something (no_new_privs), the
// working directory "/", and no signal blocked or ignored. If the user is the one that this
// process runs as, the rights stay as they are and all else holds likewise.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"
#include "core/user.h"

namespace antdt {

struct StartAs {
  std::string program;                   // a path
  std::vector<std::string> arguments;    // without argv[0]
  std::vector<std::string> environment;  // exactly this ("NAME=value")
  int standard_input = -1;               // -1: /dev/null; likewise the two that follow
  int standard_output = -1;
  int standard_error = -1;
  std::vector<int> pass;  // kept open under the same numbers, all of them above 2
};

// Returns the child's pid once `program` is executed, to be reaped by the caller. An error
// says which step failed and why; nothing runs then. This process needs CAP_SETUID and
// CAP_SETGID if the user is another one.
[[nodiscard]] Result<pid_t> start_as(const UserIdentity& user, const StartAs& what);

// What tells a program whose it is: HOME, USER, LOGNAME and SHELL of the user.
[[nodiscard]] std::vector<std::string> user_environment(const UserIdentity& user);

}  // namespace antdt
