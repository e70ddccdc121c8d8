// What an order to abort must reach from the message thread: whatever the
// training thread may be blocked in.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "core/ids.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

// Holds the builder or the collective of one generation at a time. end() comes
// from any thread; everything else from the training thread.
class GenerationGuard {
 public:
  void begin(Generation generation, std::shared_ptr<CollectiveBuilder> builder) {
    const std::lock_guard lock(mutex_);
    generation_ = generation;
    builder_ = std::move(builder);
    collective_.reset();
    over_ = ended_ >= generation;
  }
  void connected(std::shared_ptr<Collective> collective) {
    const std::lock_guard lock(mutex_);
    builder_.reset();
    collective_ = std::move(collective);
    if (over_ && collective_) collective_->abort();
  }
  // Generation `generation` and those before it are over.
  void end(Generation generation) {
    const std::lock_guard lock(mutex_);
    ended_ = std::max(ended_, generation);
    if (generation < generation_) return;
    over_ = true;
    if (builder_) builder_->abort();
    if (collective_) collective_->abort();
  }
  // Lets go of what it holds; the generation stays as over as it was.
  void release() {
    const std::lock_guard lock(mutex_);
    builder_.reset();
    collective_.reset();
  }
  [[nodiscard]] bool over() const { return over_; }

 private:
  std::mutex mutex_;
  Generation generation_;
  Generation ended_;
  std::shared_ptr<CollectiveBuilder> builder_;
  std::shared_ptr<Collective> collective_;
  std::atomic<bool> over_ = false;
};

}  // namespace antdt::trainer
