// Starts programs. This is the one place where the project forks and executes. (Agents start shims
// with Boost.Process, antdtd/processes/shim_launcher.cc.)
//
// The child has the three standard descriptors that it is given, those of `pass`, and no others. No
// signal is blocked or ignored in it, and its limit of open files is the one that this process had
// before it raised its own (core/os/process.h). Everything that may fail is done before the program
// begins, and the child reports a failure through a pipe, so an error names the step that failed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/os/user.h"
#include "core/result.h"

namespace antdt {

enum class ChildGroup {
  kOurs,     // stays in this process group, so signals of the terminal reach it, too
  kOwn,      // a process group of its own
  kSession,  // a session of its own, without a terminal
};

struct Spawn {
  std::string program;                 // a path, or a name that is looked up in PATH
  std::vector<std::string> arguments;  // without argv[0]
  // exactly these variables; empty: those of this process
  std::optional<std::vector<std::string>> environment = {};
  int standard_input = -1;  // -1: /dev/null; also for the next two
  int standard_output = -1;
  int standard_error = -1;
  std::vector<int> pass = {};  // descriptors above 2 that stay open under the same numbers
  std::string directory = {};  // working directory; empty: that of this process
  ChildGroup group = ChildGroup::kOurs;
  bool dies_with_us = false;  // it gets SIGKILL when the calling thread ends
  bool yields = false;        // it gets less processor time, and is killed first if memory runs out
  bool is_orphan = false;     // it is not a child of this process, which need not wait for it
  int cgroup_procs = -1;      // `cgroup.procs`, open for writing, of the cgroup in which it begins
  // The user as whom the program runs. It then has the user's groups, a umask of 077, no
  // capabilities and no way to gain rights by executing a program (no_new_privs), and begins in "/"
  // unless `directory` says otherwise. For another user than its own, this process needs CAP_SETUID
  // and CAP_SETGID; for its own, the uid and groups stay, and everything else applies.
  std::optional<UserIdentity> user = {};
};

struct Spawned {
  pid_t pid = 0;  // to be reaped by the caller; 0 for an orphan
  int cgroup_error =
      0;  // errno of entering the cgroup, if that failed: the program runs outside it
};

// Returns once the program is executed. Otherwise nothing runs, and the error says what was tried
// and why it failed: "cannot execute /x/y: No such file or directory". kUsage for the program or
// the directory, kIo for anything else. Another user who stops the child before that makes this
// fail, too (kObstructed), and wait no longer (unless it is to be an orphan).
[[nodiscard]] Result<Spawned> spawn(const Spawn& what);

// The variables that tell a program its user: HOME, USER, LOGNAME and SHELL.
[[nodiscard]] std::vector<std::string> user_environment(const UserIdentity& user);

}  // namespace antdt
