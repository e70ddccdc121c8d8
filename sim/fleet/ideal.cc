#include "sim/fleet/ideal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace antdt::fleet {
namespace {

// The largest micro-batch that takes at most `seconds`, if memory were unlimited.
double samples_in(const BatchTime& time, double seconds) {
  const double at_knee = time.seconds(time.flat_until);
  const double slope = (time.per_sample_s + time.delay_per_sample_s) * time.slowdown;
  if (seconds >= at_knee) {
    return slope > 0 ? time.flat_until + (seconds - at_knee) / slope
                     : std::numeric_limits<double>::max();
  }
  const double least = time.seconds(0);
  if (seconds < least) return 0;
  const double below = time.delay_per_sample_s * time.slowdown;
  return below > 0 ? std::min(time.flat_until, (seconds - least) / below) : time.flat_until;
}

// Trains one step after the other, each at the speed that the workers have when it begins.
class BestSteps {
 public:
  BestSteps(const Speeds& speeds, const Work& work)
      : speeds_(speeds), work_(work), times_(work.workers) {}

  void take(double part) {
    bool same = count_ > 0;
    for (std::uint32_t i = 0; i < work_.workers; ++i) {
      const BatchTime time = speeds_.at(i, now_s_, count_);
      same = same && time == times_[i];
      times_[i] = time;
    }
    if (!same) step_s_ = best_step_s(times_, work_.global_batch, step_s_);
    const auto recorded = speeds_.step_cost_s(now_s_);
    const double cost_s = recorded ? *recorded * work_.recorded_cost_scale : work_.step_cost_s;
    now_s_ += (step_s_ + cost_s) * part;
    ++count_;
  }
  [[nodiscard]] double now_s() const { return now_s_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  const Speeds& speeds_;
  const Work& work_;
  std::vector<BatchTime> times_;
  double step_s_ = 0;
  double now_s_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

double most_samples(const BatchTime& time, double seconds) {
  const double one = samples_in(time, seconds);
  const double memory = time.memory;
  if (time.memory == 0 || one <= memory) return one;
  const double full = std::floor(seconds / time.seconds(memory));
  const double rest = std::min(memory, samples_in(time, seconds - full * time.seconds(memory)));
  const double even = std::min(memory, samples_in(time, seconds / (full + 1)));
  return std::max(full * memory + rest, (full + 1) * even);
}

double best_step_s(std::span<const BatchTime> workers, double global_batch, double guess) {
  const auto enough = [&](double seconds) {
    double total = 0;
    for (const BatchTime& w : workers) {
      total += most_samples(w, seconds);
      if (total >= global_batch) return true;
    }
    return false;
  };
  double high = guess > 0 ? guess * 1.05 : 1e-3;
  while (!enough(high)) high *= 2;
  double low = guess > 0 && !enough(guess * 0.95) ? guess * 0.95 : 0;
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

double ideal_seconds(const Speeds& speeds, const Work& work) {
  BestSteps steps(speeds, work);
  for (double left = work.samples; left > 0; left -= work.global_batch) {
    steps.take(std::min(1.0, left / work.global_batch));
  }
  return steps.now_s();
}

std::uint64_t ideal_steps(const Speeds& speeds, const Work& work, double seconds) {
  BestSteps steps(speeds, work);
  while (steps.now_s() < seconds) steps.take(1);
  return steps.count();
}

}  // namespace antdt::fleet
