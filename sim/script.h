// What a scripted case makes happen in a simulated cluster; each may be empty.
#pragma once

#include <functional>

#include "core/ids.h"
#include "ctl/job/job_machine.h"
#include "sim/messages.h"

namespace antdt::sim {

class Worker;

struct Script {
  // An exchange does not complete at this member yet.
  std::function<bool(const Worker&)> withholds_step;
  // The state does not arrive at this member yet.
  std::function<bool(const Worker&, WorkerId from)> withholds_state;
  // A message to the daemon is kept for Daemons::release_messages().
  std::function<bool(const ToDaemon&)> holds_back;
  // The daemon crashes: what is durable was not said to anybody.
  std::function<bool(const ctl::JobMachine&)> daemon_dies;
  // A checkpoint is in place, and the journal does not know it yet.
  std::function<void()> stored;
};

}  // namespace antdt::sim
