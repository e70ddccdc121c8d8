// How long a job daemon whose job has ended waits for the copies of its last checkpoints: as long
// as bytes move, or a host checks or syncs what it has; and no longer than an operator wants. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"

namespace antdt::jobd {

class LastCopies {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(30);

  struct Sign {
    std::uint64_t moved = 0;  // how many bytes have been copied so far
    bool at_disk = false;     // a host checks or syncs files, within the time that this may take
  };
  LastCopies(MonoTime now, Sign sign) : moved_(sign.moved), since_(now) {}
  // Whether they are waited for any longer.
  [[nodiscard]] bool may_come(MonoTime now, Sign sign) {
    if (sign.moved != moved_ || sign.at_disk) since_ = now;
    moved_ = sign.moved;
    return now - since_ < kPatience && now < until_;
  }
  // An operator who asks for the end again waits so long, and no longer.
  void hurry(MonoTime until) { until_ = std::min(until_, until); }

 private:
  std::uint64_t moved_;
  MonoTime since_;
  MonoTime until_ = MonoTime::max();
};

}  // namespace antdt::jobd
