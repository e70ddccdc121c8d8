// What an abort must reach from the message thread: whatever the training thread may be blocked in.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "core/ids.h"
#include "trainer/worker/member/generation_end.h"

namespace antdt::trainer {

// Holds what one generation at a time may block in: the builder of its collective, the collective,
// or the link to its servers. end() may be called from any thread; everything else from the
// training thread.
class GenerationGuard {
 public:
  // Begins without holding anything.
  void begin(Generation generation) {
    const std::lock_guard lock(mutex_);
    end_.begin(generation);
    abort_ = {};
    over_ = end_.over();
  }
  // Replaces what was held before. Its abort() must be callable from any thread, and must make
  // every call of it end soon. If the generation is over, it is called here at once.
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
  // The generation that was begun last is over.
  void end() {
    const std::lock_guard lock(mutex_);
    end_.end();
    ended_locked();
  }
  // Releases what it holds; whether the generation is over does not change.
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
  std::atomic<bool> over_ = false;  // the same as end_, to be read without the mutex
};

}  // namespace antdt::trainer
