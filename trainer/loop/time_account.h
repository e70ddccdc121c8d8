// Where a worker's wall time goes: a stopwatch that is always in exactly one
// category, so the categories add up to the time since it began.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "core/clock.h"
#include "core/wire/worker_messages.h"
#include "trainer/worker/time_use.h"

namespace antdt::trainer {

using worker::kTimeUses;
using worker::TimeUse;

// One thread.
class TimeAccount {
 public:
  // Counts kStartup from `began`, the process's start.
  TimeAccount(const Clock& clock, MonoTime began);

  // From now on time goes there; answers what was counted before.
  TimeUse enter(TimeUse use);
  // Is told, on the same thread, what time goes to now and whenever that changes.
  // Empty: nobody is.
  void set_listener(std::function<void(TimeUse)> listener);
  [[nodiscard]] Duration spent(TimeUse use) const;  // up to now
  [[nodiscard]] Duration total() const;             // since `began`
  [[nodiscard]] wire::TimeAccount seconds() const;

 private:
  const Clock& clock_;
  MonoTime began_;
  MonoTime since_;
  TimeUse use_ = TimeUse::kStartup;
  std::array<Duration, kTimeUses> spent_{};
  std::function<void(TimeUse)> listener_;
};

// Counts time as `use` for the life of the object, then as before.
class Timed {
 public:
  Timed(TimeAccount& account, TimeUse use) : account_(account), before_(account.enter(use)) {}
  ~Timed() { account_.enter(before_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  TimeAccount& account_;
  TimeUse before_;
};

// When this process began, as the kernel keeps it (to 10 ms), on the monotonic
// clock; `now` where the kernel does not say.
[[nodiscard]] MonoTime process_start(MonoTime now);

}  // namespace antdt::trainer
