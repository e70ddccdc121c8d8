// The clock of a daemon that may itself be held up: by the commit of its journal on a disk that
// does not answer, by SIGSTOP, by a machine that swaps.
//
// A peer that was silent only while this daemon did not listen was not silent, and what was due
// meanwhile is not late. So time in which nobody read this clock counts for at most `longest`. A
// daemon whose loop turns reads it many times a second. Only one thread reads it.
#pragma once

#include <algorithm>

#include "core/clock.h"

namespace antdt {

class StandstillClock final : public Clock {
 public:
  explicit StandstillClock(const Clock& real, Duration longest = std::chrono::seconds(1))
      : real_(real), longest_(longest), read_at_(real.now()), now_(read_at_) {}

  [[nodiscard]] MonoTime now() const override {
    const MonoTime real = real_.now();
    now_ += std::min<Duration>(real - read_at_, longest_);
    read_at_ = real;
    return now_;
  }
  // How much time has not been counted so far.
  [[nodiscard]] Duration stood_still() const { return read_at_ - now_; }

 private:
  const Clock& real_;
  Duration longest_;
  mutable MonoTime read_at_;
  mutable MonoTime now_;
};

}  // namespace antdt
