// How many samples each worker id trained, how its time was spent and how it summed embedding
// gradients, over all of its attempts, for the report. An observer, which is shown starts, ends and
// measurements. Pure; not durable.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "core/wire/worker_messages.h"

namespace antdt::ctl {

class WorkerTimes {
 public:
  struct Times {
    std::uint64_t samples = 0;
    std::uint64_t of_others = 0;  // of these: computed for other workers in shared steps
    wire::TimeAccount time;
    wire::TableSums table_sums;
    wire::ShadowSums shadow;
    wire::UpdateSums updates;
    double wall_seconds = 0;          // of attempts that have ended
    std::optional<double> cpus = {};  // how many CPUs the present attempt used lately
  };

  // The start of this attempt was requested.
  void started(Member member, MonoTime now);
  void measured(WorkerId worker, const wire::Metrics& metrics);
  void left(WorkerId worker, const wire::Bye& bye);
  void ended(Member member, MonoTime now);
  // The first group is complete, so no worker has been started again before.
  void group_formed(const std::vector<Member>& members, MonoTime now);

  // The sum of the attempts that have ended and of the present one.
  [[nodiscard]] Times of(WorkerId worker) const;
  // From the start of the first group's workers until the group was complete.
  [[nodiscard]] const std::optional<Duration>& startup() const { return startup_; }

 private:
  std::map<WorkerId, Times> present_;
  std::map<WorkerId, Times> earlier_;
  std::map<Member, MonoTime> started_;
  std::optional<Duration> startup_;
};

}  // namespace antdt::ctl
