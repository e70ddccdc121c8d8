// The core of antdt-shim: the parent of one worker, for as long as any process of the worker lives.
//
// The shim outlives its agent. It drains the worker's output into files, passes signals on to the
// whole tree, and stores the exit status. It kills everything when no agent claims it, or none can
// because its directory was removed. It starts a private agent again that is gone
// (antdtd/shim/successor.h). Signals to the shim:
//   SIGTERM   SIGTERM to every process of the tree
//   SIGUSR1   SIGKILL to every process of the tree
// When the worker ends by itself, what is left of its tree is killed at once. After a SIGTERM the
// rest may still use the grace, which the agent measures.
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
  Duration orphan_timeout{};  // 0: waits for an agent without limit
  std::string working_directory;
  std::string cgroup;  // cgroup of the worker alone; empty: none. It is removed with the worker
  // its cgroup.procs, opened by a process with the right to do so; -1: the worker opens it
  int cgroup_procs_fd = -1;
  // Whether processes that lose their parent become children of the shim, and end with the worker.
  // Not for a job daemon, which may have started its own agent again.
  bool keep_orphans = true;
  // The CPUs ("0-15,32-47") and the NUMA node nearest to the worker's devices, to which it is bound
  // (antdtd/shim/binding.h); "" and -1: to none.
  std::string cpus;
  int numa_node = -1;
  // The files of the claims of the worker's devices, which it joins (antdtd/shim/claim_file.h).
  std::vector<std::string> device_claims;
  SuccessorOptions agent;  // a private agent that is to be started again
  std::vector<std::string> command;
};

// Returns the exit code for main: 0 once the exit file is written; the worker's own code (128+n for
// signal n) if it could not be written; 125 if nothing was started.
[[nodiscard]] int run_shim(const ShimOptions& options);

}  // namespace antdt::antdtd
