#include "launcher/plan/measured.h"

#include <algorithm>
#include <numeric>

namespace antdt::launcher::plan {

double at(const Curve& curve, double samples) {
  if (curve.empty()) return 0;
  if (curve.size() == 1) return curve[0].value * samples / curve[0].samples;
  std::size_t right = 1;
  while (right + 1 < curve.size() && curve[right].samples < samples) ++right;
  const Point& a = curve[right - 1];
  const Point& b = curve[right];
  const double slope = (b.value - a.value) / (b.samples - a.samples);
  return std::max(0.0, a.value + slope * (samples - a.samples));
}

double ModelSize::dense_bytes() const { return std::reduce(sums.begin(), sums.end()); }

std::uint32_t Measured::workers() const {
  std::uint32_t all = 0;
  for (const HostLoad& host : hosts) all += host.workers;
  return all;
}

std::uint32_t Measured::most_workers_of_a_host() const {
  std::uint32_t most = 0;
  for (const HostLoad& host : hosts) most = std::max(most, host.workers);
  return most;
}

std::uint32_t Measured::hosts_with_workers() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(hosts, [](const HostLoad& host) { return host.workers > 0; }));
}

double Measured::batch() const { return global_batch / std::max(1U, workers()); }

}  // namespace antdt::launcher::plan
