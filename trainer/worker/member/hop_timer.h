// When a member wants its hop in the ring measured. Pure.
//
// A slow link can only be one where everybody waits: who does not wait wants nothing,
// and as all must want it, where somebody computes all the time nothing is measured
// and it costs nothing. Measuring takes a sixth of the time at most.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/clock.h"

namespace antdt::worker {

class HopTimer {
 public:
  explicit HopTimer(MonoTime now) : measured_(now), heard_(now) {}

  // Of the time until now, since this was last said.
  void waited(Duration time, MonoTime now) {
    const double passed = to_seconds(now - heard_);
    if (passed <= 0) return;
    const double kept = std::exp(-passed / to_seconds(kApart));
    share_ = kept * share_ + (1 - kept) * std::min(1.0, to_seconds(time) / passed);
    heard_ = now;
  }
  [[nodiscard]] bool wants(MonoTime now) const {
    return now - measured_ >= std::max(kApart, 5 * took_) && share_ >= kShare;
  }
  // Between these moments it was.
  void measured(MonoTime began, MonoTime ended) {
    measured_ = ended;
    took_ = ended - began;
    heard_ = ended;
  }

 private:
  static constexpr Duration kApart = std::chrono::milliseconds(300);
  static constexpr double kShare = 1.0 / 8;
  MonoTime measured_;
  Duration took_{};
  MonoTime heard_;
  double share_ = 0;  // of the time, lately, that it waited
};

}  // namespace antdt::worker
