// Something that runs on a simulated machine, and may stand still or end.
#pragma once

#include <utility>

#include "sim/world.h"

namespace antdt::sim {

// What it has scheduled happens unless it ends before, and waits while it is frozen (SIGSTOP, or
// its machine is suspended). It may be frozen for several reasons at once: it goes on when it was
// thawed as often as it was frozen.
class Process {
 public:
  explicit Process(World& world) : world_(world) {}

  void after(Duration delay, Action action) { world_.after(life_, delay, std::move(action)); }
  void freeze() { life_.freeze(); }
  void thaw() {
    for (Action& action : life_.thaw()) after({}, std::move(action));
  }
  void end() { life_.end(); }
  [[nodiscard]] bool stands_still() const { return life_.frozen(); }

 private:
  World& world_;
  Life life_;
};

// CLOCK_MONOTONIC of a machine: it has its own first value and rate, and stands still while the
// machine is suspended. Values of two clocks must not be compared.
class HostClock {
 public:
  HostClock(const World& world, MonoTime base, double rate)
      : world_(&world), base_(base), since_(world.now()), rate_(rate) {}

  [[nodiscard]] MonoTime now() const {
    if (stands_) return base_;
    return base_ + std::chrono::duration_cast<Duration>((world_->now() - since_) * rate_);
  }
  // The world's time in which this clock advances by `local`.
  [[nodiscard]] Duration real(Duration local) const {
    return std::chrono::duration_cast<Duration>(local / rate_) + std::chrono::microseconds(1);
  }
  void stand_still() {
    base_ = now();
    stands_ = true;
  }
  void go_on() {
    if (!std::exchange(stands_, false)) return;
    since_ = world_->now();
  }
  // The machine was started again.
  void restart(MonoTime base) {
    base_ = base;
    since_ = world_->now();
    stands_ = false;
  }

 private:
  const World* world_;
  MonoTime base_;
  MonoTime since_;
  double rate_;
  bool stands_ = false;
};

}  // namespace antdt::sim
