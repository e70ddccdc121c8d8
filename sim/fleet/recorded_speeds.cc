#include "sim/fleet/recorded_speeds.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace antdt::fleet {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kLeastEndS = 3;  // of the recording's end

// Micro-batches of one size that a worker reported together.
struct Batches {
  double from_s = 0;  // of training
  double count = 0;
  double samples = 0;  // of one
  double seconds = 0;  // that one took
};

std::optional<Batches> batches_of(const shard_server::WorkerMoment& w, double from_s) {
  if (w.batches == 0 || w.samples == 0 || w.data_us + w.compute_us == 0) return {};
  const double count = static_cast<double>(w.batches) * std::max<std::uint32_t>(w.accumulation, 1);
  return Batches{from_s, count, static_cast<double>(w.samples) / count,
                 static_cast<double>(w.data_us + w.compute_us) * kMicro / count};
}

// A line by least squares. If sizes differ too little to show a fixed part, or time correlates too
// weakly with size (a slowdown changed both), time is in proportion to size.
BatchTime line_through(const std::vector<Batches>& all) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  double least = all.front().samples, most = least;
  for (const Batches& b : all) {
    n += b.count;
    x += b.count * b.samples;
    y += b.count * b.seconds;
    xx += b.count * b.samples * b.samples;
    xy += b.count * b.samples * b.seconds;
    yy += b.count * b.seconds * b.seconds;
    least = std::min(least, b.samples);
    most = std::max(most, b.samples);
  }
  BatchTime time;
  time.per_sample_s = y / x;
  const double var_x = xx - x * x / n;
  const double var_y = yy - y * y / n;
  const double both = xy - x * y / n;
  if (most < 1.2 * least || var_x <= 0 || var_y <= 0 || both <= 0) return time;
  const double slope = both / var_x;
  const double fixed = (y - slope * x) / n;
  if (fixed < 0 || both * both < 0.9 * var_x * var_y) return time;
  time.flat_s = fixed;
  time.per_sample_s = slope;
  return time;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<RecordedSpeeds> RecordedSpeeds::make(const shard_server::Series& series,
                                            std::uint32_t workers, Afterwards afterwards) {
  RecordedSpeeds speeds;
  std::vector<std::vector<Batches>> recorded(workers);
  std::vector<double> costs;
  for (const shard_server::Moment& moment : series.moments) {
    std::optional<double> least;  // the shortest wait in a step
    for (const shard_server::WorkerMoment& w : moment.workers) {
      const auto batches = batches_of(w, speeds.seconds_);
      if (!batches || w.member.worker.index >= workers) continue;
      recorded[w.member.worker.index].push_back(*batches);
      const double waited =
          static_cast<double>(w.wait_us) * kMicro / static_cast<double>(w.batches);
      least = std::min(least.value_or(waited), waited);
    }
    if (least) costs.push_back(*least);
    speeds.seconds_ += moment.seconds;
  }
  if (costs.empty()) {
    return fail(ErrorKind::kUsage, "nothing is recorded of what its workers measured");
  }
  speeds.step_cost_s_ = median(std::move(costs));
  std::vector<double> per_sample;
  for (const std::vector<Batches>& all : recorded) {
    Worker worker;
    if (!all.empty()) {
      worker.time = line_through(all);
      double own_s = 0, samples = 0;
      std::vector<double> counts, factors;
      for (const Batches& b : all) {
        own_s += b.count * b.seconds;
        samples += b.count * b.samples;
        factors.push_back(b.seconds / worker.time.seconds(b.samples));
        counts.push_back(b.count);
        worker.changes.push_back({b.from_s, factors.back()});
      }
      worker.seconds_per_sample = own_s / samples;
      worker.afterwards = afterwards == Afterwards::kAsUsual
                              ? median(std::move(factors))
                              : speeds.factor_after_end(worker, counts);
      per_sample.push_back(worker.time.per_sample_s);
    }
    speeds.workers_.push_back(std::move(worker));
  }
  for (Worker& worker : speeds.workers_) {
    if (worker.changes.empty()) worker.time.per_sample_s = median(per_sample);
  }
  return speeds;
}

// The mean of the last tenth, and of at least a few seconds. `counts`: batches by change.
double RecordedSpeeds::factor_after_end(const Worker& worker,
                                        const std::vector<double>& counts) const {
  const double from_s = std::min(0.9 * seconds_, seconds_ - kLeastEndS);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (worker.changes[i].from_s < from_s) continue;
    sum += counts[i] * worker.changes[i].slowdown;
    count += counts[i];
  }
  return count > 0 ? sum / count : worker.changes.back().slowdown;
}

BatchTime RecordedSpeeds::at(std::uint32_t worker, double at_s, std::uint64_t /*step*/) const {
  const Worker& w = workers_[worker];
  BatchTime time = w.time;
  if (at_s >= seconds_) {
    time.slowdown = w.afterwards;
  } else if (!w.changes.empty()) {
    const auto next = std::ranges::upper_bound(w.changes, at_s, {}, &Change::from_s);
    time.slowdown = (next == w.changes.begin() ? next : std::prev(next))->slowdown;
  }
  return time;
}

}  // namespace antdt::fleet
