#include "core/threads/disk_thread.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/os/owned_fd.h"
#include "core/threads/blocked_signals.h"

namespace antdt {

struct DiskThread::State {
  struct Named {
    std::string what;
    Job job;
  };

  State(const Clock& time, std::size_t most)
      : clock(time), most_waiting(most), ready(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    ANTDT_CHECK(ready.is_open(), "eventfd: {}", std::strerror(errno));
  }

  void work();
  void give(std::string what, Job job);
  [[nodiscard]] bool idle() const { return waiting.empty() && !busy; }
  bool await_idle(Duration patience) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, patience, [this] { return idle(); });
  }

  const Clock& clock;
  const std::size_t most_waiting;
  OwnedFd ready;
  std::mutex mutex;
  std::condition_variable changed;  // a job was added or finished
  std::deque<Named> waiting;
  std::deque<Then> done;
  bool busy = false;
  bool ending = false;
  std::string what;     // set while busy
  MonoTime moved_at{};  // set while busy
  std::uint64_t refused = 0;
  std::thread thread;  // the last member, because it uses all of the above
};

DiskThread::DiskThread(const Clock& clock, std::size_t most_waiting)
    : state_(std::make_unique<State>(clock, most_waiting)) {
  const BlockedSignals blocked;
  state_->thread = std::thread([state = state_.get()] { state->work(); });
}

DiskThread::~DiskThread() { static_cast<void>(end(Duration::max() / 4)); }

void DiskThread::State::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return ending || !waiting.empty(); });
    if (waiting.empty()) return;
    Named next = std::move(waiting.front());
    waiting.pop_front();
    busy = true;
    what = std::move(next.what);
    moved_at = clock.now();
    lock.unlock();
    Then then = next.job();
    next.job = {};  // destroys what the job holds before anyone is told that it is done
    lock.lock();
    busy = false;
    if (then) {
      done.push_back(std::move(then));
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(ready.get(), &one, sizeof one);
    }
    changed.notify_all();
  }
}

void DiskThread::State::give(std::string name, Job job) {
  waiting.push_back({std::move(name), std::move(job)});
  changed.notify_all();
}

void DiskThread::run(std::string what, Job job) {
  const std::lock_guard lock(state_->mutex);
  state_->give(std::move(what), std::move(job));
}

bool DiskThread::offer(std::string what, Job job) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() >= state_->most_waiting) {
    ++state_->refused;
    return false;
  }
  state_->give(std::move(what), std::move(job));
  return true;
}

std::uint64_t DiskThread::refused() const {
  const std::lock_guard lock(state_->mutex);
  return state_->refused;
}

int DiskThread::ready_fd() const { return state_->ready.get(); }

// Using the results may add new jobs.
void DiskThread::deliver() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(state_->ready.get(), &count, sizeof count);
  std::deque<Then> done;
  {
    const std::lock_guard lock(state_->mutex);
    done.swap(state_->done);
  }
  for (const Then& then : done) then();
}

std::optional<DiskThread::Present> DiskThread::present() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->busy) return {};
  return Present{state_->what, state_->clock.now() - state_->moved_at, state_->waiting.size()};
}

void DiskThread::progress() {
  const std::lock_guard lock(state_->mutex);
  state_->moved_at = state_->clock.now();
}

bool DiskThread::await_idle(Duration patience) const { return state_->await_idle(patience); }

bool DiskThread::end(Duration patience) {
  if (!state_->thread.joinable()) return true;
  if (!state_->await_idle(patience)) return false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
  return true;
}

}  // namespace antdt
