// What the journal keeps of a lifecycle. Names and meaning are the same in every journal so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/lifecycle/state/phases.h"
#include "ctl/processes/failures.h"
#include "ctl/processes/hosts.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl {

// What survives a restart of the job daemon.
struct LifecycleImage {
  std::uint8_t state = 0;
  std::vector<WorkerProcessImage> workers;
  std::vector<HostState> hosts;
  std::uint64_t phase = 0;  // 0: no phase has opened yet
  Phases::Sizes sizes;
  std::optional<EarlyEnd> training_ends;
  bool collective = true;
  bool made_progress = false;
  bool gang_stops = false;  // all processes are ending, and then all are started again
  // how many times in a row the gang failed soon after its start
  std::uint32_t gang_quick_failures = 0;
  double gang_waits_until_s = 0;  // earliest time to start the gang again
  std::uint64_t checkpoints_ordered = 0;
  std::uint64_t checkpoints_stored = 0;
  bool checkpoint_pending = false;
  bool model_kept = false;  // the final model is in place, so all may leave
  std::vector<FailureRecord> failures;
  std::uint64_t incident = 1;  // the incident to which failures belong now
  Budgets::Image budgets;
  double trained_s = 0;
  double seconds = 0;              // since the job began, when this was written
  std::optional<Outcome> outcome;  // set from kStopping on
  std::string over_budget;    // names the budget that was exceeded by the failure that ends the job
  std::uint32_t servers = 0;  // 0: the number in the job file
  std::uint32_t servers_wanted = 0;  // the number to change to; 0: no change
  std::uint64_t last_cut = 0;  // number of the checkpoint that the change waits for; 0: not ordered
  std::uint32_t servers_failed = 0;  // failed tries to change the number
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("state", m.state);
    v("workers", m.workers);
    v("hosts", m.hosts);
    v("phase", m.phase);
    v("sizes", m.sizes);
    v("training_ends", m.training_ends);
    v("collective", m.collective);
    v("made_progress", m.made_progress);
    v("gang_stops", m.gang_stops);
    v("gang_quick_failures", m.gang_quick_failures);
    v("gang_waits_until_s", m.gang_waits_until_s);
    v("checkpoints_ordered", m.checkpoints_ordered);
    v("checkpoints_stored", m.checkpoints_stored);
    v("checkpoint_pending", m.checkpoint_pending);
    v("model_kept", m.model_kept);
    v("failures", m.failures);
    v("incident", m.incident);
    v("budgets", m.budgets);
    v("trained_s", m.trained_s);
    v("seconds", m.seconds);
    v("outcome", m.outcome);
    v("over_budget", m.over_budget);
    v("servers", m.servers);
    v("servers_wanted", m.servers_wanted);
    v("last_cut", m.last_cut);
    v("servers_failed", m.servers_failed);
  }
};

}  // namespace antdt::ctl
