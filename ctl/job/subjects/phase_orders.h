// Phases: when one opens, the ledger and the members are told; when the ledger has every record of
// one, the lifecycle is told.
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
  // Announces the phase to the members of a new generation.
  void announce(const wire::PhaseStart& start, Work& work);
  void on(const PhaseCompleted& e, Work& work);
  // All records of the open phase may be committed, or skipped, already: in a new generation or
  // incarnation no other event would say so.
  void tell_if_drained(Work& work);

  // Adds how many records of the phase the members need not count any more, and for the last phase
  // which member writes the model.
  [[nodiscard]] wire::PhaseStart as_it_stands(wire::PhaseStart start) const;

  // The last phase is announced again and again. If the message were lost, nobody would write the
  // model, because members that wait for their next phase ask for nothing.
  void repeat_finish(Work& work);
  // Announces it again with the next tick.
  void say_finish_soon() { finish_said_ = {}; }

 private:
  Parts& parts_;
  MonoTime finish_said_{};
};

}  // namespace antdt::ctl::job
