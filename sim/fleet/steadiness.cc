#include "sim/fleet/steadiness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/statistics/median.h"

namespace antdt::fleet {
namespace {

constexpr std::size_t kWarmUp = 2;
constexpr std::size_t kFewest = 8;

// The standard deviation of a normal distribution is 1.48 times its median deviation, and a median
// of n values has 1.25 times the standard error of their mean.
double error_of(const std::vector<double>& seconds) {
  if (seconds.size() < kWarmUp + kFewest) return 1;
  const std::vector<double> values(seconds.begin() + kWarmUp, seconds.end());
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double v : values) deviations.push_back(std::abs(v - middle));
  const double spread = 1.48 * median(std::move(deviations));
  return 1.25 * spread / std::sqrt(static_cast<double>(values.size())) / middle;
}

}  // namespace

Steadiness steadiness_of(const shard_server::Series& series, std::uint32_t workers) {
  std::vector<std::vector<double>> seconds(workers);
  for (const shard_server::Moment& moment : series.moments) {
    for (const shard_server::WorkerMoment& w : moment.workers) {
      const bool measured = w.samples > 0 && w.data_us + w.compute_us > 0;
      if (!measured || w.member.worker.index >= workers) continue;
      seconds[w.member.worker.index].push_back(static_cast<double>(w.data_us + w.compute_us) /
                                               static_cast<double>(w.samples));
    }
  }
  Steadiness least{"", 0};
  for (std::uint32_t i = 0; i < workers; ++i) {
    const double error = error_of(seconds[i]);
    if (error >= least.error) least = {to_string(WorkerId{'w', i}), error};
  }
  return least;
}

}  // namespace antdt::fleet
