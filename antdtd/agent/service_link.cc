#include "antdtd/agent/service_link.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/log/log.h"
#include "core/os/process.h"
#include "core/threads/blocked_signals.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kLongestStatusPause = std::chrono::seconds(2);
constexpr Duration kUsualLimit = std::chrono::seconds(60);  // of a manager without a watchdog
constexpr int kLooks = 8;                                   // of the deputy, in each limit

}  // namespace

bool speaks_for_loop(Duration silent, Duration limit, bool waits_for_device) {
  return waits_for_device && silent > limit / 2 + limit / kLooks;
}

ServiceLink::ServiceLink(const Clock& clock, const NotifySettings& settings)
    : clock_(clock),
      watchdog_(settings.watchdog),
      limit_(settings.watchdog.value_or(kUsualLimit)),
      loop_thread_(gettid()) {
  if (settings.socket.empty()) return;
  Result<ServiceManager> manager = ServiceManager::connect(settings.socket);
  if (!manager) {
    log_warn("{}", manager.error().message);
    return;
  }
  manager_.emplace(std::move(*manager));
  spoken_ = clock_.now();
  const BlockedSignals blocked;
  deputy_ = std::thread([this] { watch(); });
}

ServiceLink::~ServiceLink() {
  if (!deputy_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  deputy_.join();
}

// A manager that does not read now may read what is said next.
void ServiceLink::say(const std::string& lines) const {
  const Status told = manager_->tell(lines);
  if (!told) log_warn("{}", told.error().message);
}

void ServiceLink::ready(EventLoop& loop, std::function<std::string()> status) {
  if (!manager_) return;
  status_ = std::move(status);
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::kServing;
  }
  say("READY=1");
  tell_status(loop);
  pulse(loop);
}

void ServiceLink::stopping() {
  if (!manager_) return;
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::kStopping;
  }
  say("STOPPING=1\nSTATUS=ending; the processes run on for the next agent");
}

void ServiceLink::pulse(EventLoop& loop) {
  {
    const std::lock_guard lock(mutex_);
    spoken_ = clock_.now();
    if (std::exchange(waits_, false)) told_.clear();  // the loop's own status is news again
  }
  if (watchdog_) say("WATCHDOG=1");
  loop.call_after(limit_ / 2, [this, &loop] { pulse(loop); });
}

void ServiceLink::tell_status(EventLoop& loop) {
  std::string status = status_();
  if (status != told_) {
    say("STATUS=" + status);
    told_ = std::move(status);
  }
  loop.call_after(std::min(kLongestStatusPause, limit_ / 2), [this, &loop] { tell_status(loop); });
}

void ServiceLink::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, limit_ / kLooks);
    if (ending_ || phase_ == Phase::kStopping) continue;
    const Duration silent = clock_.now() - spoken_;
    if (!speaks_for_loop(silent, limit_, process_waits_for_device(loop_thread_))) continue;
    waits_ = true;
    std::string lines =
        fmt::format("STATUS=waiting for {:.0f} s for a disk that does not answer; workers run on",
                    to_seconds(silent));
    if (phase_ == Phase::kStarting) {
      const auto more = std::chrono::duration_cast<std::chrono::microseconds>(limit_);
      lines += fmt::format("\nEXTEND_TIMEOUT_USEC={}", more.count());
    } else if (watchdog_) {
      lines += "\nWATCHDOG=1";
    }
    lock.unlock();
    say(lines);
    lock.lock();
  }
}

}  // namespace antdt::antdtd
