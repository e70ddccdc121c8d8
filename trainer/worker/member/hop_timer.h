// When a member wants its hop in the ring measured. Pure.
//
// A link can only be slow if every member waits. A member that does not wait does not want a
// measurement. Because all members must want it, nothing is measured, at no cost, while some member
// computes all the time. Measuring takes at most a sixth of the time, so that a slow link is found
// soon; while the measurements take equally long, and so say nothing new, it takes a part that
// halves with each, down to a fortieth.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/clock.h"

namespace antdt::worker {

class HopTimer {
 public:
  explicit HopTimer(MonoTime now) : measured_(now), heard_(now) {}

  // How much of the time since the last call this member waited.
  void waited(Duration time, MonoTime now) {
    const double passed = to_seconds(now - heard_);
    if (passed <= 0) return;
    const double kept = std::exp(-passed / to_seconds(kApart));
    share_ = kept * share_ + (1 - kept) * std::min(1.0, to_seconds(time) / passed);
    heard_ = now;
  }
  [[nodiscard]] bool wants(MonoTime now) const {
    return now - measured_ >= std::max(kApart, apart_ * took_) && share_ >= kShare;
  }
  // It was measured between these moments.
  void measured(MonoTime began, MonoTime ended) {
    const Duration took = ended - began;
    const bool as_before = took <= 2 * took_ && took_ <= 2 * took;
    apart_ = as_before ? std::min(2 * apart_, kMostApart) : kLeastApart;
    measured_ = heard_ = ended;
    took_ = took;
  }

 private:
  static constexpr Duration kApart = std::chrono::milliseconds(300);
  static constexpr double kShare = 1.0 / 8;
  // From one measurement to the next, in the times that it took.
  static constexpr int kLeastApart = 5;
  static constexpr int kMostApart = 40;
  MonoTime measured_;
  Duration took_{};
  int apart_ = kLeastApart;
  MonoTime heard_;
  double share_ = 0;  // the part of recent time for which it waited
};

}  // namespace antdt::worker
