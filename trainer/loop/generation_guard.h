// What an order to abort must reach from the message thread: whatever the
// training thread may be blocked in.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "core/ids.h"
#include "trainer/worker/member/generation_end.h"

namespace antdt::trainer {

// Holds what one generation at a time may block in: the builder of its collective,
// the collective, or the link to its servers. end() comes from any thread;
// everything else from the training thread.
class GenerationGuard {
 public:
  // Nothing is held yet.
  void begin(Generation generation) {
    const std::lock_guard lock(mutex_);
    end_.begin(generation);
    abort_ = {};
    over_ = end_.over();
  }
  // In place of what was held before. Its abort() may be called from any thread,
  // and makes every call of it end soon; at once, here, when the generation is over.
  template <class T>
  void hold(std::shared_ptr<T> what) {
    const std::lock_guard lock(mutex_);
    abort_ = [held = std::move(what)] { held->abort(); };
    if (over_) abort_();
  }
  // Generation `generation` and those before it are over.
  void end(Generation generation) {
    const std::lock_guard lock(mutex_);
    end_.end(generation);
    ended_locked();
  }
  // The one that was begun last is.
  void end() {
    const std::lock_guard lock(mutex_);
    end_.end();
    ended_locked();
  }
  // Lets go of what it holds; the generation stays as over as it was.
  void release() {
    const std::lock_guard lock(mutex_);
    abort_ = {};
  }
  [[nodiscard]] bool over() const { return over_; }

 private:
  void ended_locked() {
    over_ = end_.over();
    if (over_ && abort_) abort_();
  }

  std::mutex mutex_;
  worker::GenerationEnd end_;
  std::function<void()> abort_;
  std::atomic<bool> over_ = false;  // as end_ has it, for a look without the mutex
};

}  // namespace antdt::trainer
