// Lets a worker go that nobody answers any more.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/clock.h"

namespace antdt::trainer {

// A worker leaves between two batches. One that waits for parameter servers may
// never come there, because they are leaving too: once it was to leave for `grace`
// it is released, once. A thread of its own, for the life of the object.
class LeaveWatch {
 public:
  // Both are called on that thread.
  LeaveWatch(std::function<bool()> is_to_leave, Duration grace, std::function<void()> release);
  ~LeaveWatch();
  LeaveWatch(const LeaveWatch&) = delete;
  LeaveWatch& operator=(const LeaveWatch&) = delete;

 private:
  void run();

  const std::function<bool()> is_to_leave_;
  const Duration grace_;
  const std::function<void()> release_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace antdt::trainer
