// Time, passed in by constructor.
#pragma once

#include <chrono>
#include <cstdint>

namespace antdt {

using Duration = std::chrono::nanoseconds;
// Monotonic time of this machine. Times of two machines are never compared without the offset that
// was measured for their link.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual MonoTime now() const = 0;
};

// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] MonoTime now() const override { return std::chrono::steady_clock::now(); }
};

// A clock that stands still until it is set, for tests and the simulation.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] MonoTime now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  void set(MonoTime to) { now_ = to; }

 private:
  MonoTime now_{};
};

[[nodiscard]] inline double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
[[nodiscard]] inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace antdt
