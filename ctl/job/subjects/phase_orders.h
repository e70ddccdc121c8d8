// Phases: when one opens, what the ledger and the members are told of it; when the ledger has all
// of one, what the lifecycle is told.
#pragma once

#include "core/clock.h"
#include "core/wire/training_messages.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class PhaseOrders {
 public:
  explicit PhaseOrders(Parts& parts) : parts_(parts) {}

  void open(const wire::PhaseStart& start, Work& work);
  // To the members of a new generation.
  void announce(const wire::PhaseStart& start, Work& work);
  void on(const PhaseCompleted& e, Work& work);

  // With the records of the phase that members need not count any more; of the last phase, with
  // who writes the model.
  [[nodiscard]] wire::PhaseStart as_it_stands(wire::PhaseStart start) const;

  // The last phase is announced again and again: a message may be lost, and then nobody writes the
  // model, since members that wait for their next phase ask for nothing.
  void repeat_finish(Work& work);
  // With the next tick.
  void say_finish_soon() { finish_said_ = {}; }

 private:
  Parts& parts_;
  MonoTime finish_said_{};
};

}  // namespace antdt::ctl::job
