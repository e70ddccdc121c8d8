#include "sim/fleet/recorded_speeds.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/statistics/median.h"

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

}  // namespace

Result<RecordedSpeeds> RecordedSpeeds::make(const shard_server::Series& series,
                                            std::uint32_t workers, Afterwards afterwards) {
  RecordedSpeeds speeds;
  std::vector<std::vector<Batches>> recorded(workers);
  std::vector<double> costs;
  for (const shard_server::Moment& moment : series.moments) {
    std::optional<Changing::Value> least;  // the shortest wait in a step
    for (const shard_server::WorkerMoment& w : moment.workers) {
      const auto batches = batches_of(w, speeds.seconds_);
      if (!batches || w.member.worker.index >= workers) continue;
      recorded[w.member.worker.index].push_back(*batches);
      const auto count = static_cast<double>(w.batches);
      const double waited = static_cast<double>(w.wait_us) * kMicro / count;
      if (!least || waited < least->value) least = {speeds.seconds_, waited, count};
    }
    if (least) {
      costs.push_back(least->value);
      speeds.costs_.values.push_back(*least);
    }
    speeds.seconds_ += moment.seconds;
  }
  if (costs.empty()) {
    return fail(ErrorKind::kUsage, "nothing is recorded of what its workers measured");
  }
  speeds.usual_step_cost_s_ = median(std::move(costs));
  speeds.costs_.find_afterwards(afterwards, speeds.seconds_);
  std::vector<double> per_sample;
  for (const std::vector<Batches>& all : recorded) {
    Worker worker;
    if (!all.empty()) {
      worker.time = line_through(all);
      double own_s = 0, samples = 0;
      for (const Batches& b : all) {
        own_s += b.count * b.seconds;
        samples += b.count * b.samples;
        worker.slowdown.values.push_back(
            {b.from_s, b.seconds / worker.time.seconds(b.samples), b.count});
      }
      worker.seconds_per_sample = own_s / samples;
      worker.slowdown.find_afterwards(afterwards, speeds.seconds_);
      per_sample.push_back(worker.time.per_sample_s);
    }
    speeds.workers_.push_back(std::move(worker));
  }
  for (Worker& worker : speeds.workers_) {
    if (worker.slowdown.values.empty()) worker.time.per_sample_s = median(per_sample);
  }
  return speeds;
}

// At its end: the mean of the last tenth, and of at least a few seconds.
void RecordedSpeeds::Changing::find_afterwards(Afterwards how, double end_s) {
  if (how == Afterwards::kAsUsual) {
    std::vector<double> all;
    for (const Value& v : values) all.push_back(v.value);
    afterwards = median(std::move(all));
    return;
  }
  const double from_s = std::min(0.9 * end_s, end_s - kLeastEndS);
  double sum = 0, count = 0;
  for (const Value& v : values) {
    if (v.from_s < from_s) continue;
    sum += v.count * v.value;
    count += v.count;
  }
  afterwards = count > 0 ? sum / count : values.back().value;
}

double RecordedSpeeds::Changing::at(double at_s, double end_s) const {
  if (at_s >= end_s) return afterwards;
  const auto next = std::ranges::upper_bound(values, at_s, {}, &Value::from_s);
  return (next == values.begin() ? next : std::prev(next))->value;
}

BatchTime RecordedSpeeds::at(std::uint32_t worker, double at_s, std::uint64_t /*step*/) const {
  const Worker& w = workers_[worker];
  BatchTime time = w.time;
  if (!w.slowdown.values.empty()) time.slowdown = w.slowdown.at(at_s, seconds_);
  return time;
}

}  // namespace antdt::fleet
