// When a member wants its hop in the ring measured. Pure.
//
// A slow link can only be one where everybody waits: who does not wait wants nothing,
// and as all must want it, where somebody computes all the time nothing is measured
// and it costs nothing. Measuring takes a sixth of the time at most.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace antdt::trainer {

class HopTimer {
 public:
  explicit HopTimer(MonoTime now) : since_(now) {}

  void waited(Duration time) { waited_ += time; }
  [[nodiscard]] bool wants(MonoTime now) const {
    const Duration passed = now - since_;
    return passed >= std::max(kApart, 5 * took_) && waited_ * 8 >= passed;
  }
  // Between these moments it was.
  void measured(MonoTime began, MonoTime ended) {
    since_ = ended;
    took_ = ended - began;
    waited_ = {};
  }

 private:
  static constexpr Duration kApart = std::chrono::milliseconds(300);
  MonoTime since_;
  Duration took_{};
  Duration waited_{};
};

}  // namespace antdt::trainer
