// A cgroup (version 2) for each process of a job, if the machine lets this agent make them. It
// gives a memory limit that the kernel enforces, evidence if the limit was reached, and an end from
// which no process escapes.
//
//   <root>/antdt-agent             the agent itself, if root was its own cgroup:
//                                  a cgroup with limits on its children holds no
//                                  process
//   <root>/antdt-<job>-<w0.1>      one worker with all its children; its shim is
//                                  outside. Removed with the worker
//
// The root is what --cgroup names, or the agent's own cgroup if that was handed to it (systemd's
// Delegate=yes). Without cgroups, a worker's tree is found by its parents, and its memory is not
// bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"
#include "core/result.h"

namespace antdt::antdtd {

// The agent's own cgroup if the agent may manage it: the root of the paths above. The error says
// why there is none.
[[nodiscard]] Result<std::string> delegated_cgroup();
// Lifts the limits of the cgroups below it, which CgroupRoot::open made possible, so that a process
// may be started in it. The next agent sets them again.
[[nodiscard]] Status release_cgroup();

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // 0: none
  double cpus = 0;                 // 0: none
};

// The cgroup in which cgroups are made.
class CgroupRoot {
 public:
  // Makes `path` usable: moves its own process (this one, if `path` is its cgroup) out of the way,
  // and passes the memory and CPU controllers down. An error if no process can be put into a cgroup
  // below it.
  [[nodiscard]] static Result<CgroupRoot> open(const std::string& path);

  [[nodiscard]] bool limits_memory() const { return memory_; }
  [[nodiscard]] bool limits_cpus() const { return cpu_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Sets the limits of a cgroup below the root. Limits that this root cannot set are left out.
  [[nodiscard]] Status limit(const std::string& group, const CgroupLimits& limits) const;

  // Makes an empty, limited cgroup for this process. An existing one of that name is ended and
  // removed, for which this call waits for at most `patience`.
  [[nodiscard]] Result<std::string> make(const ProcessKey& key, const CgroupLimits& limits,
                                         Duration patience = std::chrono::seconds(2)) const;

 private:
  explicit CgroupRoot(std::string path) : path_(std::move(path)) {}
  std::string path_;
  bool memory_ = false;
  bool cpu_ = false;
};

// ---- one cgroup, by its path; with "" nothing is done

// Sends SIGKILL to every process in it.
void kill_cgroup(const std::string& group);
// The content of its memory.events; empty if that is missing.
[[nodiscard]] std::string memory_events(const std::string& group);
// Kills the processes in it and removes it, without waiting. kBusy: some have not ended yet, which
// takes a moment. kFailed: it will not be removed by trying again.
enum class CgroupRemoval { kRemoved, kBusy, kFailed };
CgroupRemoval try_to_remove_cgroup(const std::string& group);
// The same, trying again for at most `wait`; for processes without a loop. False if it is still
// there.
bool remove_cgroup(const std::string& group, Duration wait);
// Puts the calling process into it; safe between fork and exec. `procs` is <group>/cgroup.procs.
// `opened` is a descriptor of that file if a process with more rights opened it before; the kernel
// checks the rights at that time.
[[nodiscard]] bool enter_cgroup(const char* procs, int opened = -1);

}  // namespace antdt::antdtd
