#include "trainer/ps_link/service_times.h"

#include <algorithm>
#include <chrono>

namespace antdt::ps {

void ServiceTimes::add(Duration took) {
  if (kept_.size() < kKept) {
    kept_.push_back(took);
  } else {
    kept_[next_] = took;
    next_ = (next_ + 1) % kKept;
  }
}

ServiceTimes::Percentiles ServiceTimes::take() {
  Percentiles percentiles;
  if (kept_.empty()) return percentiles;
  std::ranges::sort(kept_);
  const auto at = [&](std::size_t percent) {
    return std::chrono::duration<double, std::micro>(kept_[kept_.size() * percent / 100]).count();
  };
  percentiles = {at(50), at(99)};
  kept_.clear();
  next_ = 0;
  return percentiles;
}

}  // namespace antdt::ps
