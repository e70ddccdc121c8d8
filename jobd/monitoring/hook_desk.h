// Tells a program of the user's the events that are worth waking somebody: [hooks] event in
// job.toml. ctl/job/metrics/hook_queue.h decides. Nothing that the program does, or fails to do,
// reaches the job.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/os/rotating_file.h"
#include "ctl/job/metrics/hook_queue.h"
#include "jobd/monitoring/event_hook.h"

namespace antdt::jobd {

struct Shell;

class HookDesk {
 public:
  static constexpr std::size_t kLogBytes = 2U << 20;  // of both files of hooks.log

  explicit HookDesk(Shell& shell);

  // `event`: a line of events.jsonl.
  void offer(const std::string& kind, const std::string& event);
  void tick();
  // Only the job's last event is still told.
  void job_ended() { queue_.job_ended(); }
  // Calls `then` once no hook runs and no event waits, which takes no longer than two hooks may.
  void when_done(std::function<void()> then);

 private:
  void start(const ctl::HookQueue::Call& call);
  void end(const std::string& how);
  void write_log(const std::string& words);

  Shell& shell_;
  ctl::HookQueue queue_;
  std::unique_ptr<EventHook> hook_;
  std::vector<pid_t> dying_;  // hooks that were killed, until nothing is left of them
  bool failed_ = false;       // the last call failed, which was told
  std::shared_ptr<RotatingFile> log_;
  std::function<void()> then_;
};

}  // namespace antdt::jobd
