// A program's word that the training ends with what is trained by now, and why. Any thread gives
// it; the driver of the member reads it before each step. The first word counts.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

namespace antdt::trainer {

class EndOfTraining {
 public:
  // `reason` is not empty.
  void say(std::string reason) {
    const std::lock_guard lock(mutex_);
    if (said_) return;
    reason_ = std::move(reason);
    said_ = true;
  }
  // Empty: the training goes on.
  [[nodiscard]] std::string reason() const {
    if (!said_) return {};
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::string reason_;
  std::atomic<bool> said_ = false;
};

}  // namespace antdt::trainer
