// Members that descend a function of a vector, each by gradients of its own, and mix their vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/names.h"
#include "trainer/sync/ds_sync/groups.h"

namespace antdt::bench::synchronisation {

enum class Mixing : std::uint8_t {
  kNone,            // nobody mixes
  kFixedGroups,     // the same groups of about sqrt(N) in each step
  kRowsAndColumns,  // of a grid, in turn
  kDsSync,          // trainer/sync/ds_sync
  kAll,             // all members in each step: the mean is that of summed gradients
};
constexpr auto names_of(Mixing) {
  return names("none", "fixed groups", "rows and columns", "ds-sync", "all");
}

// The groups that mix in a step.
[[nodiscard]] sync::Groups groups_of(Mixing mixing, const sync::ds_sync::GroupSchedule& schedule,
                                     std::uint64_t step);

// The function is 1/2 * sum of h_k (x_k - a_k)^2 with curvatures h_k of 0.01 to 1 and an optimum of
// standard normal numbers a_k. A member's gradient is that of its own function, whose optimum is
// a_k + `skew` times a normal number that only it has, and noise.
struct Descent {
  std::uint32_t members = 16;
  std::uint32_t dimensions = 100;
  std::uint32_t steps = 2000;
  double rate = 0.05;
  double noise = 0.2;  // standard deviation of each element of a gradient
  double skew = 0;     // how much members' data differ
  std::uint64_t seed = 1;
};

struct Outcome {
  // How far the parameters at which members compute their gradients are from the mean of all: the
  // root of the mean square of the distances, divided by the length of the mean; mean of the last
  // tenth of the steps.
  double consensus_error = 0;
  std::vector<double> mean;  // of all members, at the end
  double loss = 0;           // of that
};

[[nodiscard]] Outcome descend(const Descent& about, Mixing mixing);

}  // namespace antdt::bench::synchronisation
