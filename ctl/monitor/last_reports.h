// The newest reports of a worker. Where steps are so long that the longest transient window holds
// too few of them, its figures come from these. Value type; time must not go back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/clock.h"
#include "ctl/monitor/window.h"

namespace antdt::ctl {

class LastReports {
 public:
  // Remembers so many.
  explicit LastReports(std::size_t most) : most_(most) {}

  void add(const BatchSums& sums, MonoTime now);
  // The newest reports that hold so many batches together, or all that there are. Those before a
  // pause do not count: together they would be older than twice the time that their batches took.
  [[nodiscard]] SlidingWindow::Stretch at_least(std::uint64_t batches, MonoTime now) const;
  // Forgets the reports that came before `time`.
  void forget_before(MonoTime time);
  void clear() { reports_.clear(); }

 private:
  struct Report {
    MonoTime when{};
    BatchSums sums;
  };
  std::size_t most_;
  std::deque<Report> reports_;
};

}  // namespace antdt::ctl
