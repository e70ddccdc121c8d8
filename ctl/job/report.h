// Reports of the job daemon: the status of a running job and the summary of an ended one, as JSON.
// Pure functions from values to text.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/job_states.h"
#include "core/report/traffic.h"
#include "core/report/training_ended.h"
#include "core/report/work_report.h"
#include "core/wire/device/device_messages.h"
#include "core/wire/named_sums.h"
#include "core/wire/servers/ps_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/monitor/view.h"
#include "ctl/processes/io_watch.h"
#include "ctl/trace/hang.h"

namespace antdt::ctl {

// One worker id: the process of its present attempt, and the measurements of all attempts.
struct WorkerReport {
  WorkerId worker;
  std::optional<std::uint32_t> rank;
  std::string host;
  Device device;
  std::uint32_t pid = 0;
  Attempt attempt;
  ProcessState state{};
  std::uint32_t batch = 0;  // samples per step in the newest plan
  std::optional<double>
      tried_again_in_s;           // while waiting: time from now until a host is looked for
  double samples_per_second = 0;  // speed of its own work, transient window
  bool judged = false;            // enough was measured for a verdict
  Verdict verdict;
  std::uint64_t samples = 0;            // samples that it trained
  std::uint64_t samples_of_others = 0;  // of these: computed for other workers in shared steps
  std::optional<double> cpus;           // how many CPUs it uses now
  wire::TimeAccount time;
  wire::TableSums table_sums = {};
  wire::ShadowSums shadow = {};
  wire::UpdateSums updates = {};
  // Time between the worker's exit and the job's end (or now), which `time` does not contain.
  double wall_seconds = 0;
  IoProgress io = {};  // what it reads or writes now
  // Traced: what one step takes.
  struct Step {
    double data_s = 0, compute_s = 0, wait_s = 0;
  };
  std::optional<Step> step = {};
};

// One parameter server, as it last reported.
struct ServerReport {
  WorkerId server;
  std::string host;
  std::uint32_t pid = 0;
  Attempt attempt;
  ProcessState state{};
  wire::PsStats said;
  std::optional<ServerRole> role = {};  // for a server of two processes
  bool judged = false;                  // enough was measured for a verdict
  Verdict verdict = {};
  IoProgress io = {};  // what it reads or writes now
};

// Of a script that is traced (ctl/trace).
struct TracedReport {
  std::uint64_t ranks = 0;
  bool samples_known = false;
  double steps_per_second = 0;
  std::string runs;
};
struct HangReport {
  trace::Hang hang;
  double time_s = 0;
  bool over = false;
};

struct ActionReport {
  std::uint64_t number = 0;  // from 1
  double time_s = 0;
  std::string kind, target, reason, outcome;
};

struct EpochReport {
  // Not a number: it is not known, or the model has diverged.
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t samples = 0;
  double seconds = 0;  // seconds of its training phase; 0: not known
  struct Eval {
    std::optional<double> auc, log_loss, accuracy;
    std::uint64_t records = 0;
    wire::NamedSums named = {};
  };
  std::optional<Eval> eval;
};

// Accounts over all epochs, in records.
struct Totals {
  std::uint64_t once = 0, repeated = 0, lost = 0, skipped = 0, unaccounted = 0;
  std::map<std::string, std::uint64_t> skipped_by_program = {};  // of `skipped`, by reason
};

struct HostReport {
  std::string name;
  std::string agent;       // the end point of its agent
  std::uint32_t room = 0;  // how many workers it takes in all
  bool up = false;
  bool closed = false;     // an operator evicted it
  bool probation = false;  // it failed often lately, so it is avoided
  double penalty = 0;
  std::string drained = {};  // "by WHO: why"; "": it is not drained
  wire::HostDevices devices = {};
};

// How many failures of a class end the job, and how many of them are left.
struct BudgetReport {
  std::string cls;
  std::uint32_t limit = 0;
  std::uint32_t left = 0;
};

struct JobReport {
  std::string job;
  JobState state{};
  Generation generation;
  std::string collective = {};  // what carries the bytes between its members; empty: not known
  // Whether servers decide about pushes; where members of a collective agree on steps, they do not.
  bool servers_decide = true;
  std::optional<report::Traffic> traffic = {};  // what workers exchanged in collectives
  std::optional<report::UpdateThreshold> update_threshold = {};
  Lineage lineage;
  Incarnation incarnation;
  std::uint32_t epoch = 0;  // the present epoch, from 0
  std::uint32_t epochs = 0;
  Step step;
  std::uint64_t samples_done = 0;
  std::uint64_t samples_total = 0;
  std::uint64_t rows_put_aside = 0;  // malformed rows of the data, which are no records
  double wall_seconds = 0;
  double training_seconds = 0;  // of training phases, until the newest progress; 0: not known
  // the present speed while the job runs; the mean of all training phases at its end; 0: not known
  double samples_per_second = 0;
  std::optional<double> train_loss;  // recent
  std::string message;               // the last thing that happened
  std::string solution_trouble;  // why the user's program makes no decisions now; empty: it decides
  std::string disk_trouble;      // which filesystem is full, or does not answer; empty: none
  bool paused = false;           // the journal's disk is full, so nobody is given records
  std::string waiting_for;       // which processes are waited for, and for what; empty: none
  std::vector<WorkerReport> workers;
  std::vector<ServerReport> servers;
  wire::PsStats decided_before = {};  // decisions that none of `servers` counts
  std::uint32_t servers_count = 0;   // while the job runs; there may be more processes than servers
  std::uint32_t servers_wanted = 0;  // set while the number of servers changes to this
  std::vector<ActionReport> actions;
  std::uint64_t actions_before = 0;  // how many there were before these
  std::vector<EpochReport> epoch_reports;
  Totals totals;
  Delivery delivery = Delivery::kExactlyOnce;
  std::optional<Outcome> outcome;
  std::vector<std::string> checkpoints;
  std::vector<FailureRecord> failures;
  std::uint64_t failures_before = 0;  // how many there were before these
  std::vector<HostReport> hosts;
  std::vector<BudgetReport> budgets;
  std::optional<report::TrainingEnded> training_ended = {};
  std::optional<TracedReport> traced = {};
  std::optional<HangReport> hang = {};
};

[[nodiscard]] std::string status_json(const JobReport& report);
[[nodiscard]] std::string summary_json(const JobReport& report);

}  // namespace antdt::ctl
