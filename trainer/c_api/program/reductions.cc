#include "trainer/c_api/program/reductions.h"

#include <span>

#include "include/antdt.h"

namespace antdt::capi {

Reductions::Reductions() : thread_([this] { run(); }) {}

Reductions::~Reductions() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reductions::begin(trainer::Collective& collective) {
  const std::lock_guard lock(mutex_);
  collective_ = &collective;
  open_ = false;
  status_ = {};
}

void Reductions::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
}

Status Reductions::finish() {
  std::unique_lock lock(mutex_);
  open_ = false;
  changed_.wait(lock, [&] { return idle_locked(); });
  collective_ = nullptr;
  return status_;
}

Status Reductions::add(void* values, std::uint64_t count, std::int32_t dtype) {
  const std::lock_guard lock(mutex_);
  if (!open_) {
    return fail(ErrorKind::kUsage,
                "antdt_reduce: buffers are reduced while the order 'reduce' is in hand, or "
                "'compute' with `last`");
  }
  if (!status_) return fail(ErrorKind::kAborted, "{}", status_.error().message);
  if (count == 0) return {};
  sums_.push_back({values, count, dtype});
  changed_.notify_all();
  return {};
}

Reductions::Waited Reductions::wait(Duration timeout) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return idle_locked(); };
  if (!done() && timeout > Duration(0)) changed_.wait_for(lock, timeout, done);
  if (!done()) return Waited::kNotYet;
  return status_ ? Waited::kDone : Waited::kBroken;
}

bool Reductions::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_locked();
}

void Reductions::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || !sums_.empty(); });
    if (quit_) return;
    const Sum sum = sums_.front();
    busy_ = true;
    trainer::Collective& collective = *collective_;
    lock.unlock();
    const auto count = static_cast<std::size_t>(sum.count);
    const Status status =
        sum.dtype == ANTDT_F32
            ? collective.allreduce_sum(std::span(static_cast<float*>(sum.values), count))
            : collective.allreduce_sum(std::span(static_cast<double*>(sum.values), count));
    lock.lock();
    busy_ = false;
    sums_.pop_front();
    if (!status) {
      status_ = status;
      sums_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace antdt::capi
