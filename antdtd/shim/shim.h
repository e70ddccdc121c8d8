// What runs inside antdt-shim: the parent of one worker, for as long as any
// process of it lives.
//
// The shim outlives its agent. It drains the worker's output into files, passes
// signals on to the whole tree, keeps the exit status, and kills everything when
// no agent claims it, or nobody can because its directory was removed. It starts
// a private agent again that is gone (antdtd/shim/successor.h). Signals to the shim:
//   SIGTERM   SIGTERM to every process of the tree
//   SIGUSR1   SIGKILL to every process of the tree
// When the worker ends by itself, what is left of its tree is killed at once;
// after a SIGTERM the rest may still use the grace, which the agent counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "antdtd/shim/successor.h"
#include "core/clock.h"

namespace antdt::antdtd {

struct ShimOptions {
  std::string process_dir;  // antdtd/shim/shim_files.h
  std::string log_prefix;   // output goes to <prefix>.out and <prefix>.err
  std::uint64_t log_bytes = 0;
  Duration orphan_timeout{};  // 0: waits for an agent forever
  std::string working_directory;
  std::string cgroup;        // of the worker alone; empty: none. Removed with it
  int cgroup_procs_fd = -1;  // its cgroup.procs, opened by who may; -1: by the worker itself
  // Whether processes that lose their parent come to the shim, and end with the
  // worker. Not for a job daemon: it may have started its own agent again.
  bool keep_orphans = true;
  SuccessorOptions agent;  // a private agent that is to be started again
  std::vector<std::string> command;
};

// Returns the exit code for main: 0 once the exit file is written; the worker's
// own (128+n for signal n) if it could not be; 125 if nothing was started.
[[nodiscard]] int run_shim(const ShimOptions& options);

}  // namespace antdt::antdtd
