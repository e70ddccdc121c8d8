// A cgroup (version 2) for each process of a job, where the machine lets this
// agent make them: a bound on memory that the kernel keeps, evidence when it was
// reached, and an end that nothing escapes.
//
//   <root>/antdt-agent             the agent itself, if root was its own group:
//                                  a group with limits on its children holds no
//                                  process
//   <root>/antdt-<job>-<w0.1>      one worker with all its children; its shim is
//                                  outside. Gone when the worker is
//
// The root is what --cgroup names, or the agent's own group if that was handed
// to it (systemd's Delegate=yes). Nothing is lost without: a worker's tree is
// then found by its parents, its memory is not bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"
#include "core/result.h"

namespace antdt::antdtd {

// The agent's own cgroup if it may do in it what it wants: the root that begins
// the paths above. An error says why there is none.
[[nodiscard]] Result<std::string> delegated_cgroup();
// Takes from the groups below it the limits that CgroupRoot::open made possible,
// so that a process may be started in it; the next agent limits them again.
[[nodiscard]] Status release_cgroup();

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // 0: none
  double cpus = 0;                 // 0: none
};

// Where cgroups are made.
class CgroupRoot {
 public:
  // Makes `path` usable: its own process (this one, if `path` is its group) out
  // of the way, the controllers of memory and CPU handed down. An error if no
  // process can be put into a group below it.
  [[nodiscard]] static Result<CgroupRoot> open(const std::string& path);

  [[nodiscard]] bool limits_memory() const { return memory_; }
  [[nodiscard]] bool limits_cpus() const { return cpu_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Sets the limits of one of its groups; those that this root cannot set are
  // left out.
  [[nodiscard]] Status limit(const std::string& group, const CgroupLimits& limits) const;

  // An empty group for this process, limited; what has its name is ended and
  // removed.
  [[nodiscard]] Result<std::string> make(const ProcessKey& key, const CgroupLimits& limits) const;

 private:
  explicit CgroupRoot(std::string path) : path_(std::move(path)) {}
  std::string path_;
  bool memory_ = false;
  bool cpu_ = false;
};

// ---- one group, by its path; "" is none, and nothing is done

// Every process in it gets SIGKILL.
void kill_cgroup(const std::string& group);
// Its memory.events; empty if there are none.
[[nodiscard]] std::string memory_events(const std::string& group);
// Kills what is in it and removes it. False if it is still there after `wait`.
bool remove_cgroup(const std::string& group, Duration wait);
// Puts the calling process into it; safe between fork and exec. `procs` is
// <group>/cgroup.procs, and `opened` a descriptor of that file if somebody opened it
// before: the right to do so is looked at there.
[[nodiscard]] bool enter_cgroup(const char* procs, int opened = -1);

}  // namespace antdt::antdtd
