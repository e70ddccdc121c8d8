#include "antdtd/processes/endings.h"

#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "antdtd/shim/cgroup.h"
#include "core/log/log.h"

namespace antdt::antdtd {
namespace {

constexpr Duration kNextTry = std::chrono::milliseconds(50);
constexpr Duration kNextTryOfLeft = std::chrono::seconds(1);

}  // namespace

void Endings::after(Duration delay, std::function<void()> call) {
  loop_.call_after(delay, [alive = alive_, call = std::move(call)] {
    if (*alive) call();
  });
}

void Endings::make_sure(const ProcessKey& key, Wanted wanted) {
  const pid_t helper = wanted.helper;
  endings_[key] = Ending{std::move(wanted)};
  if (helper == 0) return after(Duration::zero(), [this, key] { advance(key); });
  // It is reaped whenever it ends, even if nobody waits for it any more.
  const Status watched = loop_.watch_process(helper, [alive = alive_, this, key, helper] {
    waitpid(helper, nullptr, WNOHANG);
    if (*alive) helper_over(key, helper);
  });
  if (!watched) log_warn("{}: {}", describe(key), watched.error().message);
  after(kHelperPatience, [this, key, helper, is_watched = watched.has_value()] {
    const auto found = endings_.find(key);
    if (found == endings_.end() || found->second.wanted.helper != helper) return;
    log_warn(
        "{}: its shim was killed, and process {}, which ends what the shim left, took longer than "
        "{:.0f} s (its user may have stopped it) and is killed: processes of this job may be left; "
        "as root, "
        "end those of the user whose /proc/PID/environ has ANTDT_JOB_ID={}",
        describe(key), helper, to_seconds(kHelperPatience), key.job);
    kill(helper, SIGKILL);
    if (!is_watched) waitpid(helper, nullptr, WNOHANG);
    helper_over(key, helper);
  });
}

void Endings::helper_over(const ProcessKey& key, pid_t helper) {
  const auto found = endings_.find(key);
  if (found == endings_.end() || found->second.wanted.helper != helper) return;
  found->second.wanted.helper = 0;
  advance(key);
}

void Endings::advance(const ProcessKey& key) {
  const auto found = endings_.find(key);
  if (found == endings_.end()) return;
  Ending& ending = found->second;
  if (!ending.patience) ending.patience = loop_.now() + kCgroupPatience;
  const bool busy = try_to_remove_cgroup(ending.wanted.cgroup) == CgroupRemoval::kBusy;
  if (busy && loop_.now() < *ending.patience) {
    return after(kNextTry, [this, key] { advance(key); });
  }
  if (busy) remove(ending.wanted.cgroup);
  const std::function<void()> done = std::move(ending.wanted.done);
  endings_.erase(found);
  done();
}

void Endings::remove(const std::string& cgroup) {
  if (try_to_remove_cgroup(cgroup) != CgroupRemoval::kBusy) return;
  left_.insert(cgroup);
  if (!std::exchange(trying_, true)) after(kNextTryOfLeft, [this] { try_left_again(); });
}

void Endings::try_left_again() {
  std::erase_if(left_, [](const std::string& cgroup) {
    return try_to_remove_cgroup(cgroup) != CgroupRemoval::kBusy;
  });
  trying_ = !left_.empty();
  if (trying_) after(kNextTryOfLeft, [this] { try_left_again(); });
}

}  // namespace antdt::antdtd
