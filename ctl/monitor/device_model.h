// A device class's time for one micro-batch of any size, from the sizes that were
// measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ctl/monitor/view.h"

namespace antdt::ctl {

class DeviceModel {
 public:
  // Points with fewer than `enough` micro-batches are left out. A smaller
  // micro-batch never takes longer: points that say so are averaged.
  DeviceModel(std::span<const DeviceCurve::Point> points, double enough);

  [[nodiscard]] bool empty() const { return knots_.empty(); }
  // Between points on the line between them; below the first as long as the first;
  // above the last on along the last line.
  [[nodiscard]] double seconds(std::uint32_t samples) const;
  [[nodiscard]] std::uint32_t largest() const;
  // Whether a size is measured that differs from this one by less than a third.
  [[nodiscard]] bool knows(std::uint32_t samples) const;

 private:
  struct Knot {
    double samples = 0;
    double seconds = 0;
  };
  std::vector<Knot> knots_;
};

}  // namespace antdt::ctl
