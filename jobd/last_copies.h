// How long a job daemon whose job has ended waits for the copies of its last checkpoints: as long
// as bytes move. Pure.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace antdt::jobd {

class LastCopies {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(30);

  // `moved`: how many bytes have been copied so far.
  LastCopies(MonoTime now, std::uint64_t moved) : moved_(moved), since_(now) {}
  // Whether they are waited for any longer.
  [[nodiscard]] bool may_come(MonoTime now, std::uint64_t moved) {
    if (moved != moved_) since_ = now;
    moved_ = moved;
    return now - since_ < kPatience;
  }

 private:
  std::uint64_t moved_;
  MonoTime since_;
};

}  // namespace antdt::jobd
