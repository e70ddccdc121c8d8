// Deliberate slowness, for drills and tests ("inject" in job.toml). Pure.
#pragma once

#include <vector>

#include "core/clock.h"

namespace antdt::trainer {

// One entry that names this worker.
struct InjectionRule {
  double slowdown = 1;  // the batch's compute time, delays included, times this
  Duration delay{};     // for each batch
  Duration delay_per_sample{};
  Duration from{};   // since the first step
  Duration until{};  // 0: for good
};

class Injection {
 public:
  explicit Injection(std::vector<InjectionRule> rules) : rules_(std::move(rules)) {}

  // How much longer a batch of `samples` that took `compute` must take, when it
  // ends `since_first_step`. Delays add up; slowdowns multiply.
  [[nodiscard]] Duration delay(Duration since_first_step, Duration compute,
                               std::uint64_t samples) const;

 private:
  std::vector<InjectionRule> rules_;
};

}  // namespace antdt::trainer
