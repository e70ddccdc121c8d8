#include "ctl/monitor/last_reports.h"

namespace antdt::ctl {

void LastReports::add(const BatchSums& sums, MonoTime now) {
  reports_.push_back({now, sums});
  if (reports_.size() > most_) reports_.pop_front();
}

SlidingWindow::Stretch LastReports::at_least(std::uint64_t batches, MonoTime now) const {
  SlidingWindow::Stretch newest{{}, now};
  for (auto report = reports_.rbegin(); report != reports_.rend(); ++report) {
    if (newest.sums.batches >= batches) break;
    BatchSums sums = newest.sums;
    sums += report->sums;
    const std::chrono::microseconds took(sums.busy_us() + sums.wait_us);
    if (now - report->when > 2 * took) break;
    newest = {sums, report->when};
  }
  return newest;
}

void LastReports::forget_before(MonoTime time) {
  while (!reports_.empty() && reports_.front().when < time) reports_.pop_front();
}

}  // namespace antdt::ctl
