#include "ctl/job/metrics/past_counts.h"

#include <algorithm>

namespace antdt::ctl {

void PastCounts::see(const JobReport& report) {
  for (const ActionReport& action : report.actions) {
    if (action.number <= newest_action_) continue;
    newest_action_ = action.number;
    ++actions_[{action.kind, action.outcome}];
  }
  for (std::uint8_t c = 0; c < static_cast<std::uint8_t>(FailureClass::kAsked); ++c) {
    failures_.try_emplace(std::string(name_of(static_cast<FailureClass>(c))));
  }
  for (const FailureClass later : {FailureClass::kOrphaned, FailureClass::kDevice}) {
    failures_.try_emplace(std::string(name_of(later)));
  }
  std::set<FailureKey> now;
  for (const FailureRecord& f : report.failures) {
    const FailureKey key{f.time_s, f.worker, f.attempt, f.cls};
    if (!known_.contains(key) && now.insert(key).second) {
      ++failures_[std::string(name_of(static_cast<FailureClass>(f.cls)))];
    }
    now.insert(key);
  }
  known_ = std::move(now);
}

}  // namespace antdt::ctl
