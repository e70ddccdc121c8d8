// The speeds of a run's workers as it recorded them (shard_server/history/series.h), for
// what another solution would have made of them.
//
// Of each worker: a line, what a micro-batch of b samples takes on the whole, and over
// time how much slower or faster than that it was. The line has a fixed part where the
// recorded batches differ enough to show one; else time is in proportion to samples,
// which is all that a run with equal batches tells.
//
// Time is that of training: seconds in which nobody reported (evaluation, restarts) are
// left out. A worker that did not report for a while was as before, and who trains on
// after the recording's end is as in its last tenth on average. What chance does to a
// single batch is not recorded: there is no noise but that of the seconds.
#pragma once

#include <optional>
#include <vector>

#include "shard_server/history/series.h"
#include "sim/fleet/speeds.h"

namespace antdt::fleet {

class RecordedSpeeds final : public Speeds {
 public:
  // For workers 0 to `workers` - 1; those that never reported are as the median of the
  // others. kUsage: nobody reported anything.
  [[nodiscard]] static Result<RecordedSpeeds> make(const shard_server::Series& series,
                                                   std::uint32_t workers);

  [[nodiscard]] BatchTime at(std::uint32_t worker, double at_s, std::uint64_t step) const override;
  [[nodiscard]] double noise(std::uint32_t, std::uint64_t) const override { return 1; }

  // What a step cost beside its slowest member's own work, in the median: what the one
  // that waited least has waited.
  [[nodiscard]] double step_cost_s() const { return step_cost_s_; }
  [[nodiscard]] double seconds() const { return seconds_; }  // recorded

 private:
  struct Change {
    double from_s = 0;
    double slowdown = 1;
  };
  struct Worker {
    BatchTime time;
    std::vector<Change> changes;  // rising; empty: as `time`
    double afterwards = 1;
  };
  std::vector<Worker> workers_;
  double seconds_ = 0;
  double step_cost_s_ = 0;
};

}  // namespace antdt::fleet
