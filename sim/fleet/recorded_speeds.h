// The speeds of a run's workers as the run recorded them (shard_server/history/series.h), to
// simulate the same run under another solution.
//
// Each worker has a line (the time of a micro-batch of b samples, over the whole run) and a factor
// over time (how much slower or faster the worker was at that moment). The line has a fixed part if
// the recorded batches differ enough to show one; otherwise time is in proportion to samples,
// because a run with equal batches tells no more.
//
// What a step costs beside the slowest member's own work changes over time, too.
//
// Time is training time: seconds in which no worker reported (evaluation, restarts) are left out. A
// worker that did not report for a while keeps its last factor. After the recording's end it has
// the average factor of the last tenth, or of the whole recording (Afterwards). The randomness of
// single batches is not recorded, so the only noise is that between the seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shard_server/history/series.h"
#include "sim/fleet/speeds.h"

namespace antdt::fleet {

// As what part of the recording the workers are after its end: its end, for a run that was recorded
// nearly whole; or its median, for a short recording of workers whose speed does not change.
enum class Afterwards : std::uint8_t { kAsAtItsEnd, kAsUsual };

class RecordedSpeeds final : public Speeds {
 public:
  // For workers 0 to `workers` - 1. A worker that never reported gets the median of the others.
  // kUsage: no worker reported anything.
  [[nodiscard]] static Result<RecordedSpeeds> make(const shard_server::Series& series,
                                                   std::uint32_t workers,
                                                   Afterwards afterwards = Afterwards::kAsAtItsEnd);

  [[nodiscard]] BatchTime at(std::uint32_t worker, double at_s, std::uint64_t step) const override;
  [[nodiscard]] double noise(std::uint32_t, std::uint64_t) const override { return 1; }
  // The cost beside the slowest member's own work, which is the shortest wait of a member in the
  // step.
  [[nodiscard]] std::optional<double> step_cost_s(double at_s) const override {
    return costs_.at(at_s, seconds_);
  }

  [[nodiscard]] double usual_step_cost_s() const { return usual_step_cost_s_; }  // the median
  [[nodiscard]] double seconds() const { return seconds_; }                      // recorded
  // Seconds of its own work for a sample, over the whole recording; 0: it never reported.
  [[nodiscard]] double seconds_per_sample(std::uint32_t worker) const {
    return workers_[worker].seconds_per_sample;
  }

 private:
  // A figure that changes.
  struct Changing {
    struct Value {
      double from_s = 0;
      double value = 0;
      double count = 0;  // how many batches it is the mean of
    };
    std::vector<Value> values;  // in rising order of time
    double afterwards = 0;      // after the recording's end
    [[nodiscard]] double at(double at_s, double end_s) const;
    void find_afterwards(Afterwards how, double end_s);
  };
  struct Worker {
    BatchTime time;
    Changing slowdown;  // without values: always as `time`
    double seconds_per_sample = 0;
  };
  std::vector<Worker> workers_;
  Changing costs_;
  double seconds_ = 0;
  double usual_step_cost_s_ = 0;
};

}  // namespace antdt::fleet
