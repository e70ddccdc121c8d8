// The best that any schedule could do: what measured times are compared with. Pure.
//
// At every moment all workers together train a global batch in the least time T for
// which the samples that they could each train in T add up to the batch:
//
//   sum over workers of most_samples(worker, T) = global batch
//
// with the workers' times as they are then, slowdowns included, cut into as many
// micro-batches as are best and fit the memory, and parts of samples allowed. To T
// comes what a step costs whoever does what (the collective). Nobody can know times
// in advance as this does, nor move work within a step without a cost: no schedule of
// whole steps is faster, but for noise, which is taken at its mean.
#pragma once

#include <cstdint>
#include <span>

#include "sim/fleet/speeds.h"

namespace antdt::fleet {

// The most samples that a worker trains in `seconds`, in micro-batches that fit.
[[nodiscard]] double most_samples(const BatchTime& time, double seconds);

// The T of above for these workers, without what a step costs in any case. `guess`:
// near it, if anything is known; 0: nothing.
[[nodiscard]] double best_step_s(std::span<const BatchTime> workers, double global_batch,
                                 double guess = 0);

struct Work {
  std::uint32_t workers = 1;
  double samples = 0;
  double global_batch = 1;
  double step_cost_s = 0;
};
// Of all of it, from the moment at which training begins.
[[nodiscard]] double ideal_seconds(const Speeds& speeds, const Work& work);
// The first number of whole steps that takes at least so long then; samples do not count.
[[nodiscard]] std::uint64_t ideal_steps(const Speeds& speeds, const Work& work, double seconds);

}  // namespace antdt::fleet
