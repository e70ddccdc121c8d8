// All that a job is made of, which the subjects of the coordinator share: the machines, the
// observers, and the subjects themselves, each with what it alone keeps. One per job, and it stays
// where it is, since its parts refer to it.
#pragma once

#include <memory>
#include <vector>

#include "core/crypto/secret.h"
#include "core/ids.h"
#include "ctl/control/controller.h"
#include "ctl/job/group/group.h"
#include "ctl/job/group/members.h"
#include "ctl/job/group/ring_group.h"
#include "ctl/job/group/servers_group.h"
#include "ctl/job/observers/run_history.h"
#include "ctl/job/observers/server_stats.h"
#include "ctl/job/observers/training_series.h"
#include "ctl/job/observers/verdict_watch.h"
#include "ctl/job/observers/worker_times.h"
#include "ctl/job/past.h"
#include "ctl/job/subjects/checkpoints.h"
#include "ctl/job/subjects/controlling.h"
#include "ctl/job/subjects/host_watch.h"
#include "ctl/job/subjects/injections.h"
#include "ctl/job/subjects/life_orders.h"
#include "ctl/job/subjects/messages.h"
#include "ctl/job/subjects/operators.h"
#include "ctl/job/subjects/phase_orders.h"
#include "ctl/job/subjects/records.h"
#include "ctl/job/subjects/restoring.h"
#include "ctl/job/subjects/suspicions.h"
#include "ctl/job/subjects/watching.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/membership/membership.h"
#include "ctl/monitor/devices.h"
#include "ctl/processes/vitals.h"
#include "ctl/servers/server_group.h"

namespace antdt::ctl::job {

struct JobMachineConfig {
  std::string job;
  JobSpec spec;
  ControllerConfig control;
  shard_server::LedgerConfig ledger;
  crypto::Secret secret = {};  // see Membership
  Incarnation incarnation{1};
  Duration hang_after = std::chrono::seconds(120);
  std::vector<DeviceRule> devices = {};
  wire::DataIdentity data = {};  // what the launching host found, as RUN/data.json has it
};

struct Parts {
  Parts(JobMachineConfig the_config, std::unique_ptr<Solution> solution,
        shard_server::Ledger ledger, shard_server::Accounts accounts, Past the_past);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Of an earlier incarnation.
  void restore(JobImage image);
  [[nodiscard]] JobImage image() const;
  // What of the present has become past is written once each.
  void persist_past(Work& work);
  // So that there is something to control.
  [[nodiscard]] bool trains() const;

  const JobMachineConfig config;

  // Machines.
  Lifecycle lifecycle;
  Membership membership;
  servers::ServerGroup servers;
  Controller controller;

  // Values that several subjects ask.
  Vitals vitals;
  Devices devices;
  bool ended = false;

  // Observers: they are shown what happens, and nobody decides by what they know.
  TrainingSeries series;
  WorkerTimes times;
  ServerStats server_stats;
  RunHistory history;
  VerdictWatch verdicts;
  Past past;
  std::string last_note;

  // Subjects.
  Records records;
  Suspicions suspicions;
  Members members;
  RingGroup ring;
  ServersGroup servers_group;
  Group& group;  // whichever of the two the job trains with
  PhaseOrders phases;
  Checkpoints checkpoints;
  Restoring restoring;
  LifeOrders life_orders;
  Controlling controlling;
  HostWatch hosts;
  Watching watching;
  Injections injections;
  Operators operators;
  Messages messages;
};

}  // namespace antdt::ctl::job
