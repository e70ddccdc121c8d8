// The best that any schedule could do, with which measured times are compared. Pure.
//
// At every moment all workers together train a global batch in the least time T for
// which the samples that they could each train in T add up to the batch:
//
//   sum over workers of most_samples(worker, T) = global batch
//
// The workers' times are those of that moment, slowdowns included. A worker's samples are cut into
// the best number of micro-batches that fit its memory, and parts of samples are allowed. The cost
// of a step beside computing (the collective) is added to T: that of the moment if it was recorded.
// No real schedule knows times in advance, or moves work within a step without a cost, so no
// schedule of whole steps is faster while speeds stand still. Where they change within a step, a
// schedule whose steps begin at luckier moments may win the part of a step at each change. Noise is
// taken at its mean.
#pragma once

#include <cstdint>
#include <span>

#include "sim/fleet/speeds.h"

namespace antdt::fleet {

// The most samples that a worker trains in `seconds`, in micro-batches that fit.
[[nodiscard]] double most_samples(const BatchTime& time, double seconds);

// The T of above for these workers, without the fixed cost of a step. `guess` is near the result,
// or 0 if nothing is known.
[[nodiscard]] double best_step_s(std::span<const BatchTime> workers, double global_batch,
                                 double guess = 0);

struct Work {
  std::uint32_t workers = 1;
  double samples = 0;
  double global_batch = 1;
  double step_cost_s = 0;          // if Speeds does not know it
  double recorded_cost_scale = 1;  // of Speeds::step_cost_s
};
// The ideal time of the whole job, from the moment at which training begins.
[[nodiscard]] double ideal_seconds(const Speeds& speeds, const Work& work);
// The smallest number of whole steps that takes at least this long; samples do not count.
[[nodiscard]] std::uint64_t ideal_steps(const Speeds& speeds, const Work& work, double seconds);

}  // namespace antdt::fleet
