// Adds up workers' reports, so that a job daemon receives one message per worker and second,
// whatever the step time is. A value, no I/O.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/clock.h"
#include "core/wire/agent_messages.h"
#include "core/wire/worker_messages.h"

namespace antdt::antdtd {

class ReportSums {
 public:
  struct Due {
    ProcessKey key;
    wire::Metrics metrics;
  };

  // Counts are added; of samples_total and the time account the latest value counts, because they
  // are totals already. The first report after a take opens a window of `period`.
  void add(const ProcessKey& key, const wire::Report& report, Duration period, MonoTime now);
  // Takes the sums whose window is over, of jobs that `can_send` says are attached; the others go
  // on.
  template <class CanSend>
  [[nodiscard]] std::vector<Due> take_due(MonoTime now, const CanSend& can_send) {
    std::vector<Due> due;
    for (auto it = sums_.begin(); it != sums_.end();) {
      if (it->second.due <= now && can_send(it->first.job)) {
        due.push_back({it->first, metrics_of(it->second, now)});
        it = sums_.erase(it);
      } else {
        ++it;
      }
    }
    return due;
  }
  // Takes the sums of one process, whatever its window, before its end is reported.
  [[nodiscard]] std::optional<Due> take(const ProcessKey& key, MonoTime now);
  // When take_due will have something next, if these jobs stay attached.
  template <class CanSend>
  [[nodiscard]] std::optional<MonoTime> next_due(const CanSend& can_send) const {
    std::optional<MonoTime> next;
    for (const auto& [key, sum] : sums_) {
      if ((!next || sum.due < *next) && can_send(key.job)) next = sum.due;
    }
    return next;
  }

 private:
  struct Sum {
    wire::Report report;
    MonoTime since{};
    MonoTime due{};
  };
  [[nodiscard]] static wire::Metrics metrics_of(const Sum& sum, MonoTime now);
  std::map<ProcessKey, Sum> sums_;
};

}  // namespace antdt::antdtd
