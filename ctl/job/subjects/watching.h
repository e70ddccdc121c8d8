// What happens with time: with each tick the machines check their deadlines, hung processes are
// found, and messages that may have been lost are repeated.
#pragma once

#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class Watching {
 public:
  explicit Watching(Parts& parts) : parts_(parts) {}

  void on(const TimePassed& e, Work& work);
  void on(const VitalsDue& e, Work& work);
  void on(const DeadlinesDue& e, Work& work);
  void on(const PauseChanged& e, Work& work);

  [[nodiscard]] bool paused() const { return paused_; }
  // Which workers are expected to make steps from now on.
  void expect_steps(const Work& work);
  // Once a second, and when the job ends: writes a moment to the run's history.
  void remember_moment(bool ends, Work& work);

 private:
  // If records are pinned: says that a domain waits for workers.
  void look_at_pins(Work& work);

  Parts& parts_;
  bool paused_ = false;
};

}  // namespace antdt::ctl::job
