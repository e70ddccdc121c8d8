#include "store/lease.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/threads/blocked_signals.h"

namespace antdt::store {

struct LeaseThread::State {
  std::shared_ptr<Etcd> etcd;
  LeaseId lease;
  std::chrono::milliseconds pause;
  std::atomic<bool> ended = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool ending = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, pause, [this] { return ending; })) {
      lock.unlock();
      const Status renewed = etcd->renew_lease(lease);
      lock.lock();
      if (!renewed && renewed.error().kind == ErrorKind::kRefused) {
        ended = true;
        return;
      }
    }
  }
};

LeaseThread::LeaseThread(std::shared_ptr<Etcd> etcd, LeaseId lease, std::chrono::seconds length)
    : state_(std::make_unique<State>()) {
  state_->etcd = std::move(etcd);
  state_->lease = lease;
  state_->pause = std::chrono::milliseconds(length) / 3;
  const BlockedSignals blocked;
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

LeaseThread::~LeaseThread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

bool LeaseThread::has_ended() const { return state_->ended; }

}  // namespace antdt::store
