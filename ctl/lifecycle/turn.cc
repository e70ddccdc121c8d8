#include "ctl/lifecycle/turn.h"

namespace antdt::ctl::lifecycle {

void Turn::take(const TimePassed&) {
  wishes.repeat_requests();
  if (stopping.look_at_deadlines()) return;
  starts.start_waiting();
  servers.look_at_last_cut();
  training.look_at_programs();
  training.look_at_checkpoints();
}

}  // namespace antdt::ctl::lifecycle
