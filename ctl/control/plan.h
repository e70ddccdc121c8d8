// Who computes how much of a global batch.
//
// All of it is arithmetic: the same input gives the same plan on every
// machine. The products micro_batch * accumulation of a plan's entries add up
// to the global batch exactly, so what a step is does not depend on the plan.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

// What the program can bear: [batch] adjust of job.toml.
enum class Adjust {
  kSize,          // the micro-batch changes, one a step
  kAccumulation,  // micro-batches of a fixed size, their number changes
  kBoth,          // the micro-batch up to its maximum, then their number
  kNone,          // never changed: equal parts
};
[[nodiscard]] Result<Adjust> parse_adjust(std::string_view text);

// [batch] of job.toml. All sizes in samples.
struct BatchRules {
  std::uint32_t global_batch = 1;
  Adjust adjust = Adjust::kBoth;
  std::uint32_t multiple_of = 1;  // of every micro-batch
  std::uint32_t min = 1;          // of a worker's part of a step
  std::uint32_t max = 0;          // of a micro-batch; 0: none
  // The fixed micro-batch under kAccumulation; see accumulation_base().
  std::uint32_t base = 0;
};

// What one worker computes of a step.
struct Share {
  WorkerId worker;
  std::uint32_t samples = 0;
  // How it computes them: accumulation micro-batches of micro_batch samples. 0: as
  // the rules have it.
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 0;
};

// Limits of each worker's part, the same for all. max 0: none.
struct Bounds {
  std::uint32_t multiple_of = 1;
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};

// `total` in proportion to `weights` (each finite and >= 0; all zero counts as
// all equal) by the method of the largest remainder, within `bounds`, exact
// sum; ties go to the lower index. O(n log n) for each round of clamping,
// seldom more than three. Fails, naming the bound, when no such parts exist.
[[nodiscard]] Result<std::vector<std::uint32_t>> distribute(std::uint32_t total,
                                                            std::span<const double> weights,
                                                            const Bounds& bounds);

// The bounds of a worker's part that `rules` mean.
[[nodiscard]] Bounds share_bounds(const BatchRules& rules);

// The fixed micro-batch of kAccumulation for a job that starts with `workers`
// workers: `max` where the job gives one, else the largest divisor of the
// global batch (a multiple of `multiple_of`) of which each worker gets at least
// four, so that parts can move by a quarter.
[[nodiscard]] std::uint32_t accumulation_base(const BatchRules& rules, std::size_t workers);

// The plan that gives each worker a part in proportion to its weight, as
// micro-batches and accumulation steps that `rules` allow. Under kBoth parts
// above `max` may move by a few samples to become a whole number of equal
// micro-batches. `workers` and `weights` match by index.
[[nodiscard]] Result<wire::Plan> make_plan(PlanVersion version, std::span<const WorkerId> workers,
                                           std::span<const double> weights,
                                           const BatchRules& rules);

// Equal parts, as nearly as the rules allow: the plan of a job's first generation.
[[nodiscard]] Result<wire::Plan> equal_plan(PlanVersion version, std::span<const WorkerId> workers,
                                            const BatchRules& rules);

// Samples a step of `entry`.
[[nodiscard]] inline std::uint32_t share_of(const wire::PlanEntry& entry) {
  return entry.micro_batch * entry.accumulation;
}

}  // namespace antdt::ctl
