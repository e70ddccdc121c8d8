// What time brings: with each tick the machines look at their deadlines, hung processes are found,
// and what may have been lost is said again.
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

  // Of whom steps can be expected from now on.
  void expect_steps(const Work& work);
  // For the run's history: once in a second, and when the job ends.
  void remember_moment(bool ends, Work& work);

 private:
  Parts& parts_;
  bool paused_ = false;
};

}  // namespace antdt::ctl::job
