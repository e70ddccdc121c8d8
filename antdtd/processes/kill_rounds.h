// When to send SIGKILL once more to a tree of processes that must end. Pure.
//
// A process may fork while it is looked for, so one round is not enough. But a process that sleeps
// where no signal wakes it (on a disk or a device that does not answer) has its SIGKILL already;
// sending it again costs a walk through /proc and changes nothing. So rounds come quickly while
// each finds a new process, and ever more seldom while it is always the same ones.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <vector>

#include "core/clock.h"

namespace antdt::antdtd {

class KillRounds {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(20);
  static constexpr Duration kLongest = std::chrono::seconds(1);

  [[nodiscard]] bool due(MonoTime now) const { return now >= next_; }
  // These processes were signalled now.
  void done(std::vector<pid_t> signalled, MonoTime now) {
    std::ranges::sort(signalled);
    pause_ = signalled == last_ ? std::min<Duration>(2 * pause_, kLongest) : kFirst;
    last_ = std::move(signalled);
    next_ = now + pause_;
  }
  // The time between the last round and the next one.
  [[nodiscard]] Duration pause() const { return pause_; }

 private:
  std::vector<pid_t> last_;
  Duration pause_ = kFirst;
  MonoTime next_{};
};

}  // namespace antdt::antdtd
