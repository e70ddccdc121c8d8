#include "ctl/monitor/batch_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/statistics/median.h"

namespace antdt::ctl {
namespace {

// A line is believed when its slope's relative standard error is below this.
constexpr double kSlopeError = 0.15;
// And not when its reports are further from it than this part of the time, in the root mean
// square, and than so many standard errors.
constexpr double kLeastMisfit = 0.08;
constexpr double kMisfitErrors = 3.0;

}  // namespace

void Scatter::add(double seconds_per_sample, double batches) {
  if (last_ > 0) {
    const double difference = std::log(seconds_per_sample / last_);
    squares_[count_++ % squares_.size()] =
        difference * difference / (1 / batches + 1 / last_batches_);
  }
  last_ = seconds_per_sample;
  last_batches_ = batches;
}

std::optional<double> Scatter::per_batch() const {
  if (count_ < 6) return std::nullopt;
  std::vector<double> squares(
      squares_.begin(),
      squares_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, squares_.size())));
  // The median of a squared standard normal variable is 0.4549.
  return std::sqrt(median(std::move(squares)) / 0.4549);
}

void BatchLine::add(double samples, double seconds, double batches) {
  // Old reports fade: after 100 newer ones they count an eighth.
  for (double* sum : {&weight, &x, &y, &xx, &xy, &yy, &reports}) *sum *= 0.98;
  reports += 1;
  weight += batches;
  x += batches * samples;
  y += batches * seconds;
  xx += batches * samples * samples;
  xy += batches * samples * seconds;
  yy += batches * seconds * seconds;
}

std::optional<BatchTimeFit> BatchLine::fit(double scatter) const {
  if (weight <= 0) return std::nullopt;
  const double mean_x = x / weight;
  const double mean_y = y / weight;
  const double variance = xx / weight - mean_x * mean_x;
  const double slope_error = scatter * mean_x / std::sqrt(weight * std::max(variance, 0.0));
  if (!(slope_error < kSlopeError)) return std::nullopt;  // infinite for a single size
  const double slope = (xy / weight - mean_x * mean_y) / variance;
  const double fixed = mean_y - slope * mean_x;
  // A line that falls, or starts well below zero, mixes two speeds.
  if (slope <= 0 || fixed < -0.1 * mean_y) return std::nullopt;
  // So does one that reports are far from: of a change just after a new plan little else
  // is seen.
  const double left = std::max(0.0, yy / weight - mean_y * mean_y - slope * slope * variance);
  const double of_noise = scatter * std::sqrt(reports / weight);
  if (std::sqrt(left) > std::max(kLeastMisfit, kMisfitErrors * of_noise) * mean_y) {
    return std::nullopt;
  }
  return BatchTimeFit{std::max(fixed, 0.0), slope};
}

}  // namespace antdt::ctl
