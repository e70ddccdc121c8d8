// Starts the worker: forks, and reports exactly why it failed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::antdtd {

struct SpawnedWorker {
  pid_t pid = 0;
  int out = -1;  // read ends of its standard output and error, non-blocking
  int err = -1;
  int cgroup_error = 0;  // errno of entering the cgroup, if that failed: the worker runs outside it
};

// Starts `command` with this process's environment, in a session of its own, with standard input
// from /dev/null. It is killed when the calling thread's process dies. A program without a slash is
// looked for beside this one, then in PATH. Must be called before any thread is started. The error
// names the program or directory and the reason: "cannot execute /x/y: No such file or directory".
// If `cgroup` is not empty, the worker begins in it, by way of `cgroup_procs_fd` if that is given,
// because a process of another user than the agent's cannot open the file. The descriptor is
// closed.
[[nodiscard]] Result<SpawnedWorker> spawn_worker(const std::vector<std::string>& command,
                                                 const std::string& working_directory,
                                                 const std::string& cgroup = {},
                                                 int cgroup_procs_fd = -1);

}  // namespace antdt::antdtd
