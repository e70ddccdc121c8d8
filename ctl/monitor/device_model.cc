#include "ctl/monitor/device_model.h"

#include <algorithm>

namespace antdt::ctl {

// Pool adjacent violators: the rising curve that is nearest to the points.
DeviceModel::DeviceModel(std::span<const DeviceCurve::Point> points, double enough) {
  struct Pool {
    double seconds, weight;
    std::vector<double> samples;
  };
  std::vector<Pool> pools;
  for (const DeviceCurve::Point& p : points) {
    if (p.micro_batches < enough || p.seconds <= 0) continue;
    pools.push_back({p.seconds, p.micro_batches, {static_cast<double>(p.samples)}});
    while (pools.size() > 1 && pools[pools.size() - 2].seconds > pools.back().seconds) {
      Pool last = std::move(pools.back());
      pools.pop_back();
      Pool& into = pools.back();
      const double weight = into.weight + last.weight;
      into.seconds = (into.seconds * into.weight + last.seconds * last.weight) / weight;
      into.weight = weight;
      into.samples.insert(into.samples.end(), last.samples.begin(), last.samples.end());
    }
  }
  for (const Pool& pool : pools) {
    for (const double samples : pool.samples) knots_.push_back({samples, pool.seconds});
  }
}

double DeviceModel::seconds(std::uint32_t samples) const {
  const double x = samples;
  const auto above =
      std::find_if(knots_.begin(), knots_.end(), [&](const Knot& k) { return k.samples >= x; });
  if (above == knots_.begin()) return knots_.front().seconds;
  if (above == knots_.end() && knots_.size() == 1)
    return knots_.front().seconds * x / knots_.front().samples;
  const Knot& right = above == knots_.end() ? knots_.back() : *above;
  const Knot& left = *(above == knots_.end() ? knots_.end() - 2 : above - 1);
  const double slope = (right.seconds - left.seconds) / (right.samples - left.samples);
  return left.seconds + slope * (x - left.samples);
}

std::uint32_t DeviceModel::largest() const {
  return knots_.empty() ? 0 : static_cast<std::uint32_t>(knots_.back().samples);
}

bool DeviceModel::knows(std::uint32_t samples) const {
  return std::any_of(knots_.begin(), knots_.end(), [&](const Knot& k) {
    return k.samples > 0.67 * samples && k.samples < 1.5 * samples;
  });
}

}  // namespace antdt::ctl
