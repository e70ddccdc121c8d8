#include "ctl/lifecycle/process_requests.h"

namespace antdt::ctl {

std::vector<ProcessRequests::Request> ProcessRequests::due(const Lifecycle& life, MonoTime now) {
  std::erase_if(asked_, [&](const auto& asked) { return !life.is_current(asked.first); });
  std::vector<Request> due;
  for (const WorkerProcess& w : life.workers()) {
    if (!w.running()) continue;
    const auto asked = asked_.find(w.member());
    if (asked != asked_.end() && now - asked->second < kAgainAfter) continue;
    if (w.is_to_be_killed(life.seconds())) {
      due.emplace_back(lifecycle::StopWorker{w.member(), w.place.host, Duration::zero()});
    } else if (w.state == WorkerProcess::kPlanned && !w.asked_to_stop()) {
      due.emplace_back(lifecycle::StartWorker{w.member(), w.place.host});
    }
  }
  return due;
}

}  // namespace antdt::ctl
