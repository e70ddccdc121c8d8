// A worker's time account: a stopwatch that is always in exactly one category, so the categories
// add up to the time since it began.
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

// Used by one thread.
class TimeAccount {
 public:
  // Counts kStartup from `began`, the start of the process.
  TimeAccount(const Clock& clock, MonoTime began);

  // From now on time counts as `use`; returns the previous category.
  TimeUse enter(TimeUse use);
  // The listener is called on the same thread with the present category, at once and at each
  // change. Empty: no listener.
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

// The start of this process on the monotonic clock, as the kernel stores it (to 10 ms); `now` if
// the kernel does not say.
[[nodiscard]] MonoTime process_start(MonoTime now);

}  // namespace antdt::trainer
