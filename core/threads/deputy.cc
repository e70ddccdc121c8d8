#include "core/threads/deputy.h"

#include "core/threads/blocked_signals.h"

namespace antdt {

Deputy::Deputy(const Clock& clock, Duration patience) : clock_(clock), patience_(patience) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

Deputy::~Deputy() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Deputy::run(const char* what, const std::function<void()>& call,
                 const std::function<void()>& meanwhile) {
  {
    const std::lock_guard lock(mutex_);
    what_ = what;
    meanwhile_ = &meanwhile;
    begun_ = acted_ = clock_.now();
  }
  call();
  const std::lock_guard lock(mutex_);
  what_ = nullptr;
  meanwhile_ = nullptr;
}

std::optional<Deputy::Present> Deputy::present() const {
  if (what_ == nullptr) return std::nullopt;
  return Present{what_, clock_.now() - begun_};
}

// It looks by itself, since to wake it would cost each call more than it takes.
void Deputy::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, patience_ / 2);
    if (meanwhile_ == nullptr || clock_.now() - acted_ < patience_) continue;
    acted_ = clock_.now();
    (*meanwhile_)();
  }
}

}  // namespace antdt
