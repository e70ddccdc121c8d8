// Releases a worker that is to leave and waits for an answer that will not come.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/clock.h"

namespace antdt::trainer {

// A worker leaves between two batches. If it waits for parameter servers that are leaving, too, it
// never gets there. So `grace` after it was asked to leave it is released, once. This uses a thread
// of its own for the life of the object.
class LeaveWatch {
 public:
  // Both functions are called on that thread.
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
