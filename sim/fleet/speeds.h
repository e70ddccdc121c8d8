// How fast the workers of a simulated job are. Pure: the answer depends only on the question.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ids.h"

namespace antdt::fleet {

// Time of a micro-batch of b samples in seconds: flat up to flat_until samples, then per_sample
// more for each. If `slowed`, it takes (that + delay + delay_per_sample
// * b) * slowdown. Seconds.
struct BatchTime {
  double flat_s = 0;
  double flat_until = 0;
  double per_sample_s = 0;
  std::uint32_t memory = 0;  // largest micro-batch, samples; 0: any
  double delay_s = 0;
  double delay_per_sample_s = 0;
  double slowdown = 1;
  [[nodiscard]] double seconds(double samples) const {
    const double beyond = samples > flat_until ? samples - flat_until : 0;
    return (flat_s + per_sample_s * beyond + delay_s + delay_per_sample_s * samples) * slowdown;
  }
  bool operator==(const BatchTime&) const = default;
};

class Speeds {
 public:
  virtual ~Speeds() = default;
  // The time of worker number `worker`, `at_s` seconds after it began to train, in `step` of the
  // job, without noise.
  [[nodiscard]] virtual BatchTime at(std::uint32_t worker, double at_s,
                                     std::uint64_t step) const = 0;
  // The random factor of its batch number `batch`, with mean 1.
  [[nodiscard]] virtual double noise(std::uint32_t worker, std::uint64_t batch) const = 0;
  // What a step costs at that moment of training beside the slowest worker's own work: the
  // collective, or a push and a pull. Empty: as Costs says (player.h).
  [[nodiscard]] virtual std::optional<double> step_cost_s(double /*at_s*/) const { return {}; }
};

}  // namespace antdt::fleet
