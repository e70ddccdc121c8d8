#include "trainer/hogwild/thread_team.h"

#include "core/check.h"
#include "core/threads/blocked_signals.h"

namespace antdt::hogwild {

ThreadTeam::ThreadTeam(std::size_t size, const std::function<void()>& begin) {
  ANTDT_CHECK(size > 0, "a team of no thread");
  const BlockedSignals blocked;
  for (std::size_t i = 1; i < size; ++i) {
    threads_.emplace_back([this, i, begin] {
      begin();
      work(i);
    });
  }
  run([](std::size_t) {});
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  begins_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(std::size_t)>& part) {
  if (threads_.empty()) return part(0);
  {
    const std::lock_guard lock(mutex_);
    part_ = &part;
    busy_ = threads_.size();
    ++round_;
  }
  begins_.notify_all();
  part(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  part_ = nullptr;
}

void ThreadTeam::work(std::size_t index) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0;; ++seen) {
    begins_.wait(lock, [&] { return ending_ || round_ != seen; });
    if (ending_) return;
    const auto& part = *part_;
    lock.unlock();
    part(index);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace antdt::hogwild
