// Formations that failed in a row: when the next one may begin, and when there were enough of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"

namespace antdt::ctl::membership {

// A stranger that connects to a member's port, or one packet too many that is lost, can spoil a
// formation, so the second one begins at once. What lasts longer, such as a network that is away or
// a host without a free port, is waited out in pauses that double.
class FailedFormations {
 public:
  void add(MonoTime now) {
    if (count_++ == 0) first_ = now;
    if (count_ > 1) {
      next_ = now + pause_;
      pause_ = std::min(2 * pause_, kLongestPause);
    }
  }
  // What they failed of is over.
  void forget() { *this = {}; }

  [[nodiscard]] bool pausing(MonoTime now) const { return now < next_; }
  // Whether there is another cause than an accident, and it has lasted for `patience`.
  [[nodiscard]] bool enough(MonoTime now, Duration patience) const {
    return count_ >= kLeast && now - first_ >= patience;
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] Duration lasted(MonoTime now) const { return now - first_; }

 private:
  static constexpr std::uint32_t kLeast = 5;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::seconds(15);

  std::uint32_t count_ = 0;
  MonoTime first_{};
  MonoTime next_{};
  Duration pause_ = kFirstPause;
};

}  // namespace antdt::ctl::membership
