// Starting a program: the one place where this project forks and executes one. (Agents start
// shims by Boost.Process, antdtd/processes/shim_launcher.cc.)
//
// The child has the three standard descriptors that it is given, those of `pass` and no others;
// no signal is blocked or ignored in it. All that may fail is done before the program begins, and
// what failed is said by the child through a pipe, so an error names the step.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/os/user.h"
#include "core/result.h"

namespace antdt {

enum class ChildGroup {
  kOurs,     // signals of the terminal reach it too
  kOwn,      // a process group of its own
  kSession,  // a session of its own, without a terminal
};

struct Spawn {
  std::string program;                 // a path, or a name that is looked for in PATH
  std::vector<std::string> arguments;  // without argv[0]
  std::optional<std::vector<std::string>> environment = {};  // exactly this; none: ours
  int standard_input = -1;  // -1: /dev/null; likewise the two that follow
  int standard_output = -1;
  int standard_error = -1;
  std::vector<int> pass = {};  // kept open under the same numbers, all of them above 2
  std::string directory = {};  // to begin in; empty: ours
  ChildGroup group = ChildGroup::kOurs;
  bool dies_with_us = false;  // gets SIGKILL when the thread that called ends
  bool yields = false;        // less processor time, and the first to go for want of memory
  bool is_orphan = false;     // nobody's child: it is not ours to wait for
  int cgroup_procs = -1;      // `cgroup.procs`, open for writing, of the cgroup to begin in
  // As whom. The program then has the user's groups, a umask of 077, no capability and no way to
  // gain rights by executing something (no_new_privs), and begins in "/" unless `directory` says
  // otherwise. This process needs CAP_SETUID and CAP_SETGID if that is another user than its own;
  // if it is its own the rights stay as they are, and all else holds likewise.
  std::optional<UserIdentity> user = {};
};

struct Spawned {
  pid_t pid = 0;         // to be reaped by the caller; of an orphan 0
  int cgroup_error = 0;  // errno of entering the cgroup: the program runs outside it
};

// Returns once the program is executed. An error says what was tried and why it failed; nothing
// runs then: "cannot execute /x/y: No such file or directory". kUsage for the program or the
// directory, kIo for anything else.
[[nodiscard]] Result<Spawned> spawn(const Spawn& what);

// What tells a program whose it is: HOME, USER, LOGNAME and SHELL of the user.
[[nodiscard]] std::vector<std::string> user_environment(const UserIdentity& user);

}  // namespace antdt
