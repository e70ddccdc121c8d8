// What the micro-batches of one worker took, by their size; and from the books of
// a device class's workers the curve of that class.
//
// A size that has not been computed for long keeps what was measured: devices do
// not change by themselves. What makes it wrong is a change of the worker's
// speed, and then its book begins again (ctl/monitor/monitor.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ctl/monitor/view.h"

namespace antdt::ctl {

class CurveBook {
 public:
  // `seconds`: of all of them together.
  void add(std::uint32_t micro_batch, double micro_batches, double seconds);
  void clear() { points_.clear(); }
  [[nodiscard]] const std::vector<DeviceCurve::Point>& points() const { return points_; }

 private:
  static constexpr std::size_t kSizes = 16;  // the one that was longest not used is forgotten
  static constexpr double kMemory = 500;     // micro-batches: older ones fade
  std::vector<DeviceCurve::Point> points_;   // the one used last is at the end
};

// One point for each size that somebody has measured: the median over those who
// have, so that a straggler among alike devices does not bend the curve.
[[nodiscard]] std::vector<DeviceCurve::Point> common_points(
    std::span<const CurveBook* const> books);

}  // namespace antdt::ctl
