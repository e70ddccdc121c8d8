// How long the micro-batches of one worker took, by their size, and the curve of a device class,
// from the books of its workers.
//
// A size that has not been computed for a long time keeps what was measured, because a device does
// not change by itself. If the worker's speed changes, its measurements are wrong; then its book
// begins again (ctl/monitor/monitor.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ctl/monitor/view.h"

namespace antdt::ctl {

class CurveBook {
 public:
  // `seconds`: the time of all `micro_batches` together.
  void add(std::uint32_t micro_batch, double micro_batches, double seconds);
  void clear() { points_.clear(); }
  [[nodiscard]] const std::vector<DeviceCurve::Point>& points() const { return points_; }

 private:
  // if there are more, the size that was unused longest is forgotten
  static constexpr std::size_t kSizes = 16;
  static constexpr double kMemory = 500;    // in micro-batches: older ones fade
  std::vector<DeviceCurve::Point> points_;  // the size that was used last is at the end
};

// One point for each size that any worker has measured: the median over those that have, so that
// one straggler among equal devices does not distort the curve.
[[nodiscard]] std::vector<DeviceCurve::Point> common_points(
    std::span<const CurveBook* const> books);

}  // namespace antdt::ctl
