// The faults of a scripted case in a simulated cluster; each may be empty.
#pragma once

#include <functional>

#include "core/ids.h"
#include "ctl/job/job_machine.h"
#include "sim/messages.h"

namespace antdt::sim {

class Worker;

struct Script {
  // Whether an exchange does not complete at this member yet.
  std::function<bool(const Worker&)> withholds_step;
  // Whether the state does not arrive at this member yet.
  std::function<bool(const Worker&, WorkerId from)> withholds_state;
  // Whether a message to the daemon is kept for Daemons::release_messages().
  std::function<bool(const ToDaemon&)> holds_back;
  // Whether the daemon crashes now: its turn is durable, and nothing of it was sent.
  std::function<bool(const ctl::JobMachine&)> daemon_dies;
  // A checkpoint is in place that the journal does not know yet.
  std::function<void()> stored;
};

}  // namespace antdt::sim
