// How many samples each worker id trained, how its time was spent and how it summed embedding
// gradients, over all of its attempts, for the report. An observer, which is shown starts, ends and
// measurements. Pure. Durable are the sums of attempts that have ended, and those of the present
// ones as they were at the last checkpoint (Past). The present ones tell theirs again and again, so
// they are complete after a restart of the job daemon, too. Nobody knows what an attempt did after
// its last report.
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
    std::optional<double> cpus = {};  // how many CPUs the present attempt used lately; not durable
    template <class Self, class V>
    static void fields(Self& m, V& v) {
      v("samples", m.samples);
      v("of_others", m.of_others);
      v("time", m.time);
      v("table_sums", m.table_sums);
      v("shadow", m.shadow);
      v("updates", m.updates);
      v("wall_seconds", m.wall_seconds);
    }
  };

  // What an earlier incarnation of the job daemon knew.
  void restore(WorkerId worker, const std::optional<Times>& ended,
               const std::optional<Times>& present);
  // This attempt has run since before this incarnation began.
  void runs_since(Member member, MonoTime when) { started_[member] = when; }

  // The start of this attempt was requested.
  void started(Member member, MonoTime now);
  void measured(WorkerId worker, const wire::Metrics& metrics);
  void left(WorkerId worker, const wire::Bye& bye);
  void ended(Member member, MonoTime now);
  // The first group is complete, so no worker has been started again before.
  void group_formed(const std::vector<Member>& members, MonoTime now);

  // Of the attempts that have ended; of the present one. Empty: nothing is known.
  [[nodiscard]] std::optional<Times> ended_of(WorkerId worker) const;
  [[nodiscard]] std::optional<Times> present_of(WorkerId worker) const;
  // The sum of both.
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
