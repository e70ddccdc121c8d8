// What successive reports of one worker say together: how much its batches scatter, and how their
// time depends on their size. Values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "ctl/monitor/view.h"

namespace antdt::ctl {

// Successive reports' differences in time per sample, relative and scaled to
// one batch: their median square gives the scatter.
class Scatter {
 public:
  void add(double seconds_per_sample, double batches);
  [[nodiscard]] std::optional<double> per_batch() const;  // relative standard deviation

 private:
  std::array<double, 24> squares_{};
  std::size_t count_ = 0;
  double last_ = 0;
  double last_batches_ = 0;
};

// Fading sums for the line of batch time over batch size.
struct BatchLine {
  double weight = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  double reports = 0;
  void add(double samples, double seconds, double batches);
  // Nothing where the slope is not known to a seventh, with batches that
  // scatter by `scatter`, or where they lie so far from the line that it mixes two speeds.
  [[nodiscard]] std::optional<BatchTimeFit> fit(double scatter) const;
};

}  // namespace antdt::ctl
