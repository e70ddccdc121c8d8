// Why a worker is slower than its peers: what of its time is more than theirs, and what
// its host saw of it meanwhile. Pure.
//
// Of the time that a worker that is s times slower spends on its own work, 1 - 1/s is
// lost. What its host saw explains that when it is at least half of the lost time, and
// that much more than what is usual among the peers: on a host where all wait for a
// CPU, waiting makes no straggler. What nothing explains is called by where it was
// lost, getting data or computing; or it is unknown, and what was seen is said.
#pragma once

#include <string>
#include <vector>

#include "core/wire/agent_messages.h"
#include "ctl/monitor/view.h"

namespace antdt::ctl {

// What a host saw of a worker, as parts of the time that it looked.
struct HostSigns {
  bool looked = false;
  double throttled = 0;  // held back by a bound on its CPU time
  double stolen = 0;     // the machine's CPUs were elsewhere
  double queued = 0;     // threads that could run and had no CPU; may be over 1
  double starved = 0;    // of the time that they wanted a CPU, the part without one
  double memory = 0;     // somebody waited for memory
  double io = 0;         // somebody waited for a disk
  double clocks = 0;     // its accelerator's clocks were held down
};
[[nodiscard]] HostSigns signs_of(const wire::HostProbe& probe);
// The median of each, of those where somebody looked.
[[nodiscard]] HostSigns usual_signs(const std::vector<HostSigns>& all);

// Seconds for a sample, of a worker and of its peers (medians), and the part of the
// wall time that is the worker's own.
struct OwnTime {
  double data_s = 0, compute_s = 0;
  double peers_data_s = 0, peers_compute_s = 0;
  double busy = 1;
};

struct Explained {
  Cause cause = Cause::kUnknown;
  std::string seen;  // what speaks for it, for people
};
[[nodiscard]] Explained explain_slowness(const OwnTime& time, const HostSigns& own,
                                         const HostSigns& usual);

// Whether a worker that is `severity` times slower than others on its host may be that by chance:
// all of them are short of CPUs, and for the moment the scheduler has given it less. `busy` as
// above.
[[nodiscard]] bool shortage_explains(double severity, double busy, const HostSigns& own,
                                     const HostSigns& usual);

}  // namespace antdt::ctl
