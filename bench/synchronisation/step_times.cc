#include "bench/synchronisation/step_times.h"

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "trainer/sync/ds_sync/groups.h"

namespace antdt::bench::synchronisation {
namespace {

using Group = std::vector<std::uint32_t>;

double bytes_per_s(const Fleet& fleet, std::uint32_t a, std::uint32_t b) {
  const Slow& slow = fleet.slow;
  const bool slow_link =
      slow.link && (std::pair(a, b) == *slow.link || std::pair(b, a) == *slow.link);
  const bool slow_host = slow.host && (a == *slow.host || b == *slow.host);
  return fleet.bytes_per_s / (slow_link || slow_host ? slow.factor : 1);
}

// Every round of a ring passes one part of the bytes over each of its links at once, so each round
// takes as long as the slowest link.
double ring_s(const Fleet& fleet, const Group& group) {
  const auto n = static_cast<double>(group.size());
  double slowest = fleet.bytes_per_s;
  for (std::size_t i = 0; i < group.size(); ++i) {
    slowest = std::min(slowest, bytes_per_s(fleet, group[i], group[(i + 1) % group.size()]));
  }
  return 2 * (n - 1) * (fleet.hop_s + fleet.bytes / n / slowest);
}

double gather_s(const Fleet& fleet) { return fleet.hop_s * std::bit_width(fleet.members - 1); }

class Computing {
 public:
  explicit Computing(const Fleet& fleet) : fleet_(fleet), random_(fleet.seed) {}
  double operator()() {
    const bool straggles =
        std::uniform_real_distribution<double>()(random_) < fleet_.slow.straggles;
    return fleet_.compute_s * (straggles ? fleet_.slow.straggling : 1);
  }

 private:
  const Fleet& fleet_;
  std::mt19937_64 random_;
};

}  // namespace

double all_reduce_s(const Fleet& fleet) {
  Computing compute(fleet);
  const double exchange = ring_s(fleet, sync::one_group(fleet.members).front()) + gather_s(fleet);
  double all = 0;
  for (std::uint32_t step = 0; step < fleet.steps; ++step) {
    double slowest = 0;
    for (std::uint32_t i = 0; i < fleet.members; ++i) slowest = std::max(slowest, compute());
    all += slowest + exchange;
  }
  return all / fleet.steps;
}

double ds_sync_s(const Fleet& fleet, std::uint32_t lag) {
  Computing compute(fleet);
  const sync::ds_sync::GroupSchedule schedule(fleet.members, fleet.seed);
  std::vector<double> free(fleet.members, 0);  // when each member begins its next step
  std::vector<double> sent;                    // by step: when all have sent their slots
  for (std::uint32_t step = 0; step < fleet.steps; ++step) {
    for (const Group& group : schedule.groups(Step{step})) {
      double together = 0;
      for (const std::uint32_t rank : group) together = std::max(together, free[rank]);
      for (const std::uint32_t rank : group) free[rank] = together + ring_s(fleet, group);
    }
    for (double& at : free) at += compute();
    sent.push_back(std::ranges::max(free));
    if (step < lag) continue;
    for (double& at : free) at = std::max(at, sent[step - lag] + gather_s(fleet));
  }
  return std::ranges::max(free) / fleet.steps;
}

}  // namespace antdt::bench::synchronisation
