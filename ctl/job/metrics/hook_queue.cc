#include "ctl/job/metrics/hook_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace antdt::ctl {
namespace {

// docs/operations/metrics.md lists the same, and a test compares.
constexpr std::array<std::string_view, 29> kKinds{
    // the job
    "start", "resumed", "recovered", "training-ended", "stopping", "end",
    // processes and hosts
    "worker-error", "start-refused", "refused", "hang", "hang-over", "host-lost", "cannot-begin",
    "cannot-move", "domain-waits",
    // stragglers, control, operators
    "verdict", "action", "evict", "killed-late", "solution", "operator",
    // checkpoints and disks
    "checkpoint-failed", "checkpoint-damaged", "checkpoint-unknown", "copy-failed", "disk-stalled",
    "disk-answers", "paused", "continued"};

}  // namespace

bool is_for_hooks(std::string_view kind, JobState state) {
  // All workers exit at the end of a job.
  if (kind == "worker-exited") {
    return state == JobState::kStarting || state == JobState::kForming ||
           state == JobState::kTraining || state == JobState::kEvaluating;
  }
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

void HookQueue::offer(std::string event) {
  if (waiting_.size() >= kMostWaiting) {
    waiting_.pop_front();
    ++missed_;
  }
  waiting_.push_back(std::move(event));
}

void HookQueue::job_ended() {
  while (waiting_.size() > 1) {
    waiting_.pop_front();
    ++missed_;
  }
}

std::optional<HookQueue::Call> HookQueue::next(MonoTime now) {
  if (running() || waiting_.empty()) return std::nullopt;
  Call call{std::move(waiting_.front()), std::exchange(missed_, 0)};
  waiting_.pop_front();
  running_since_ = now;
  return call;
}

}  // namespace antdt::ctl
