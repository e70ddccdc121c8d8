// All parts of a job, shared by the subjects of the coordinator: the machines, the observers, and
// the subjects themselves, each with its own data. There is one per job. It is never moved, because
// its parts refer to it.
#pragma once

#include <memory>
#include <vector>

#include "core/crypto/secret.h"
#include "core/domain/domains.h"
#include "core/domain/pinned_data.h"
#include "core/ids.h"
#include "ctl/control/controller.h"
#include "ctl/job/group/group.h"
#include "ctl/job/group/hybrid_group.h"
#include "ctl/job/group/members.h"
#include "ctl/job/group/ring_group.h"
#include "ctl/job/group/servers_group.h"
#include "ctl/job/observers/pin_watch.h"
#include "ctl/job/observers/run_history.h"
#include "ctl/job/observers/server_stats.h"
#include "ctl/job/observers/traffic_totals.h"
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
#include "ctl/job/traced.h"
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
  Duration host_lost_after{};  // when a silent host is given up
  std::vector<DeviceRule> devices = {};
  Domains domains = {};
  // the data's identity that the launching host found, as in RUN/data.json
  wire::DataIdentity data = {};
  PinnedData pins = {};  // which of the data are pinned to which domains
};

struct Parts {
  Parts(JobMachineConfig the_config, std::unique_ptr<Solution> solution,
        shard_server::Ledger ledger, shard_server::Accounts accounts, Past the_past);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // The image of an earlier incarnation.
  void restore(JobImage image);
  [[nodiscard]] JobImage image() const;
  // Writes everything that has become past, once each.
  void persist_past(Work& work);
  // Writes what is known of the time and the samples of a worker; of all workers that run.
  void keep_times(WorkerId worker);
  void keep_all_times();
  // Whether its workers are members of a collective, and its rows are on servers.
  [[nodiscard]] bool is_hybrid() const { return config.spec.sync == SyncStrategy::kHybrid; }
  // Whether the job trains, so that there is something to control.
  [[nodiscard]] bool trains() const;

  const JobMachineConfig config;

  // Machines.
  Lifecycle lifecycle;
  Membership membership;
  servers::ServerGroup servers;
  Controller controller;

  // Values that several subjects use.
  Vitals vitals;
  Devices devices;
  bool ended = false;
  MonoTime now{};  // of the present step

  // Observers are shown what happens. No decision depends on them.
  TrainingSeries series;
  WorkerTimes times;
  TrafficTotals traffic;
  ServerStats server_stats;
  RunHistory history;
  VerdictWatch verdicts;
  PinWatch pins;
  Past past;
  std::string last_note;

  // Subjects.
  Records records;
  Suspicions suspicions;
  Members members;
  RingGroup ring;
  HybridGroup hybrid;
  ServersGroup servers_group;
  Group& group;  // that with which the job trains
  PhaseOrders phases;
  Checkpoints checkpoints;
  Restoring restoring;
  LifeOrders life_orders;
  Controlling controlling;
  HostWatch hosts;
  Watching watching;
  Injections injections;
  Operators operators;
  Traced traced;
  Messages messages;
};

}  // namespace antdt::ctl::job
