#include "ctl/control/curve_book.h"

#include <algorithm>
#include <map>

namespace antdt::ctl {

void CurveBook::add(std::uint32_t micro_batch, double micro_batches, double seconds) {
  const auto known = std::find_if(points_.begin(), points_.end(),
                                  [&](const auto& point) { return point.samples == micro_batch; });
  DeviceCurve::Point point{micro_batch, 0, 0};
  if (known != points_.end()) {
    point = *known;
    points_.erase(known);
  } else if (points_.size() == kSizes) {
    points_.erase(points_.begin());
  }
  const double before = std::min(point.micro_batches, kMemory);
  point.micro_batches = before + micro_batches;
  point.seconds = (point.seconds * before + seconds) / point.micro_batches;
  points_.push_back(point);
}

std::vector<DeviceCurve::Point> common_points(std::span<const CurveBook* const> books) {
  std::map<std::uint32_t, std::vector<DeviceCurve::Point>> by_size;
  for (const CurveBook* book : books) {
    for (const DeviceCurve::Point& point : book->points()) by_size[point.samples].push_back(point);
  }
  std::vector<DeviceCurve::Point> points;
  for (auto& [samples, measured] : by_size) {
    const auto middle = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
    std::nth_element(measured.begin(), middle, measured.end(),
                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    DeviceCurve::Point point{samples, middle->seconds, 0};
    for (const DeviceCurve::Point& p : measured) point.micro_batches += p.micro_batches;
    points.push_back(point);
  }
  return points;
}

}  // namespace antdt::ctl
