// Processes whose shims are gone: makes sure of their end before it is reported, and removes their
// cgroups. The loop never waits for that, because a process may take long to end, or, if it is one
// of a user, be stopped by that user.
//
//   helper runs ──it ends, or kHelperPatience is over──> cgroup is removed
//   cgroup is removed ──it is gone, or kCgroupPatience is over──> done
//
// A cgroup whose processes no signal wakes (they wait for a disk or a device) is tried again each
// second, also after its process was forgotten.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "antdtd/shim/process_key.h"
#include "core/loop.h"

namespace antdt::antdtd {

class Endings {
 public:
  static constexpr Duration kHelperPatience = std::chrono::seconds(2);
  static constexpr Duration kCgroupPatience = std::chrono::milliseconds(500);

  struct Wanted {
    pid_t helper = 0;    // a child that ends what is left of the process; 0: there is none
    std::string cgroup;  // "": it has none
    std::function<void()> done;
  };

  explicit Endings(EventLoop& loop) : loop_(loop) {}
  ~Endings() { *alive_ = false; }
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  // Calls `done` from the loop, once. The helper is reaped, and killed if it takes too long.
  void make_sure(const ProcessKey& key, Wanted wanted);
  // Kills the processes in the cgroup and removes it, now or later.
  void remove(const std::string& cgroup);
  // Another process was given a cgroup of this name: it is not removed any more.
  void keep(const std::string& cgroup) { left_.erase(cgroup); }

 private:
  struct Ending {
    Wanted wanted;                       // its helper: 0 as soon as nobody waits for it
    std::optional<MonoTime> patience{};  // until when its cgroup is waited for; empty: not yet
  };
  void helper_over(const ProcessKey& key, pid_t helper);
  void advance(const ProcessKey& key);
  void try_left_again();
  void after(Duration delay, std::function<void()> call);

  EventLoop& loop_;
  std::map<ProcessKey, Ending> endings_;
  std::set<std::string> left_;  // cgroups that are tried again
  bool trying_ = false;         // a timer is set for them
  // Callbacks that the loop still holds check it, because this object may have been destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace antdt::antdtd
