// Which worker computes how much of a global batch.
//
// All of it is arithmetic: the same input gives the same plan on every machine. The products
// micro_batch * accumulation of a plan's entries add up to the global batch exactly, so the plan
// does not change what a step is.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/names.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

// What the program allows to change: [batch] adjust of job.toml.
enum class Adjust : std::uint8_t {
  kSize,          // the size of the micro-batch, of which each step has one
  kAccumulation,  // the number of micro-batches, which have a fixed size
  kBoth,          // the micro-batch up to its maximum, then the number
  kNone,          // nothing: parts are equal
};
constexpr auto names_of(Adjust) { return names("size", "accumulation", "both", "none"); }
[[nodiscard]] Result<Adjust> parse_adjust(std::string_view text);

// [batch] of job.toml. All sizes in samples.
struct BatchRules {
  std::uint32_t global_batch = 1;
  Adjust adjust = Adjust::kBoth;
  std::uint32_t multiple_of = 1;  // every micro-batch is a multiple of it
  std::uint32_t min = 1;          // least part of a worker in a step
  std::uint32_t max = 0;          // largest micro-batch; 0: no bound
  // The fixed micro-batch under kAccumulation; see accumulation_base().
  std::uint32_t base = 0;
};

// What one worker computes in a step.
struct Share {
  WorkerId worker;
  std::uint32_t samples = 0;
  // How it computes them: in `accumulation` micro-batches of `micro_batch` samples. 0: as the rules
  // say.
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 0;
};

// Limits of each worker's part, the same for all. max 0: no bound.
struct Bounds {
  std::uint32_t multiple_of = 1;
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};

// Divides `total` in proportion to `weights` (each finite and >= 0; if all are zero they count as
// equal) by the method of the largest remainder, within `bounds`, with the exact sum. Ties go to
// the lower index. O(n log n) for each round of clamping, seldom more than three rounds. The error
// names the bound that makes it impossible.
[[nodiscard]] Result<std::vector<std::uint32_t>> distribute(std::uint32_t total,
                                                            std::span<const double> weights,
                                                            const Bounds& bounds);

// The bounds of a worker's part that follow from `rules`.
[[nodiscard]] Bounds share_bounds(const BatchRules& rules);

// The fixed micro-batch under kAccumulation, for a job that starts with `workers` workers: `max` if
// the job sets one, else the largest divisor of the global batch (a multiple of `multiple_of`) that
// gives each worker at least four micro-batches, so that parts can change by a quarter.
[[nodiscard]] std::uint32_t accumulation_base(const BatchRules& rules, std::size_t workers);

// The plan that gives each worker a part in proportion to its weight, as micro-batches and
// accumulation steps that `rules` allow. Under kBoth, parts above `max` may change by a few samples
// to become a whole number of equal micro-batches. `workers` and `weights` match by index.
[[nodiscard]] Result<wire::Plan> make_plan(PlanVersion version, std::span<const WorkerId> workers,
                                           std::span<const double> weights,
                                           const BatchRules& rules);

// Equal parts, as nearly as the rules allow: the plan of a job's first generation.
[[nodiscard]] Result<wire::Plan> equal_plan(PlanVersion version, std::span<const WorkerId> workers,
                                            const BatchRules& rules);

// Samples per step of `entry`.
[[nodiscard]] inline std::uint32_t share_of(const wire::PlanEntry& entry) {
  return entry.micro_batch * entry.accumulation;
}

}  // namespace antdt::ctl
