// Which events a user's hook hears, when it is started, and when it is ended: [hooks] event in
// job.toml. Pure.
//
// One hook runs at a time, for one event, and is ended if it takes too long. Events that come
// meanwhile wait, as many as there is room for; if there is none, the oldest is dropped, and the
// next event that is handed over tells how many were.
//
// When the job has ended, only its last event is still of use: what waits before it is dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "ctl/lifecycle/state/job_spec.h"

namespace antdt::ctl {

// Whether somebody may want to be woken by it: not by what happens in any run that goes well.
[[nodiscard]] bool is_for_hooks(std::string_view kind, JobState state);

class HookQueue {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr Duration kPatience = std::chrono::seconds(10);

  struct Call {
    std::string event;
    std::uint64_t missed = 0;  // events since the last call that no hook heard
  };

  void offer(std::string event);
  void job_ended();
  // The event to start the hook for now. The caller says what becomes of it: hook_ended().
  [[nodiscard]] std::optional<Call> next(MonoTime now);
  void hook_ended() { running_since_.reset(); }

  [[nodiscard]] bool running() const { return running_since_.has_value(); }
  [[nodiscard]] bool overdue(MonoTime now) const {
    return running_since_ && now - *running_since_ >= kPatience;
  }
  [[nodiscard]] bool idle() const { return !running() && waiting_.empty(); }

 private:
  std::deque<std::string> waiting_;
  std::uint64_t missed_ = 0;
  std::optional<MonoTime> running_since_;
};

}  // namespace antdt::ctl
