#include "trainer/loop/leave_watch.h"

#include <utility>

namespace antdt::trainer {
namespace {

// A signal handler cannot wake a thread, so the flag is polled.
constexpr Duration kLookEvery = std::chrono::milliseconds(50);

}  // namespace

LeaveWatch::LeaveWatch(std::function<bool()> is_to_leave, Duration grace,
                       std::function<void()> release)
    : is_to_leave_(std::move(is_to_leave)),
      grace_(grace),
      release_(std::move(release)),
      thread_([this] { run(); }) {}

LeaveWatch::~LeaveWatch() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LeaveWatch::run() {
  std::unique_lock lock(mutex_);
  const auto quits = [this] { return quit_; };
  while (!is_to_leave_()) {
    if (changed_.wait_for(lock, kLookEvery, quits)) return;
  }
  if (!changed_.wait_for(lock, grace_, quits)) release_();
}

}  // namespace antdt::trainer
