// What the job daemon tells people: the status of a running job and the
// summary of an ended one, as JSON. Pure: from one value to text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/wire/ps_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/monitor/view.h"
#include "ctl/processes/io_watch.h"

namespace antdt::ctl {

// Of one worker id: the present attempt's process, what all attempts measured.
struct WorkerReport {
  WorkerId worker;
  std::optional<std::uint32_t> rank;
  std::string host;
  Device device;
  std::uint32_t pid = 0;
  Attempt attempt;
  std::string state;                       // "planned", "started", "joined", "exited"
  std::uint32_t batch = 0;                 // samples a step in the newest plan
  std::optional<double> tried_again_in_s;  // waiting: when a host is looked for, from now
  double samples_per_second = 0;           // of its own work, transient window
  bool judged = false;                     // enough was measured for a verdict
  Verdict verdict;
  std::uint64_t samples = 0;  // trained
  wire::TimeAccount time;
  // Between its exit (or end of report) and the job's: not in `time`.
  double wall_seconds = 0;
  IoProgress io = {};  // what it reads or writes now
};

// Of one parameter server, as it said last.
struct ServerReport {
  WorkerId server;
  std::string host;
  std::uint32_t pid = 0;
  Attempt attempt;
  std::string state;  // as of a worker
  wire::PsStats said;
  // Where a server is two processes: "primary", "backup", "joining", "alone".
  std::string role = {};
  bool judged = false;  // enough was measured for a verdict
  Verdict verdict = {};
  IoProgress io = {};  // what it reads or writes now
};

struct ActionReport {
  std::uint64_t number = 0;  // from 1
  double time_s = 0;
  std::string kind, target, reason, outcome;
};

struct EpochReport {
  double train_loss = 0;
  std::uint64_t samples = 0;
  double seconds = 0;  // of its training phase
  struct Eval {
    std::optional<double> auc, log_loss, accuracy;
    std::uint64_t records = 0;
  };
  std::optional<Eval> eval;
};

// Accounts over all epochs, in records.
struct Totals {
  std::uint64_t once = 0, repeated = 0, lost = 0, skipped = 0, unaccounted = 0;
};

struct HostReport {
  std::string name;
  std::uint32_t room = 0;  // workers it takes in all
  bool up = false;
  bool closed = false;     // evicted
  bool probation = false;  // failed often lately: avoided
  double penalty = 0;
};

// How many failures of a class end the job, and how many are left of them.
struct BudgetReport {
  std::string cls;
  std::uint32_t limit = 0;
  std::uint32_t left = 0;
};

struct JobReport {
  std::string job;
  std::string state;
  Generation generation;
  Lineage lineage;
  Incarnation incarnation;
  std::uint32_t epoch = 0;  // the present one, from 0
  std::uint32_t epochs = 0;
  Step step;
  std::uint64_t samples_done = 0;
  std::uint64_t samples_total = 0;
  double wall_seconds = 0;
  double training_seconds = 0;       // in training phases so far
  double samples_per_second = 0;     // now, while it runs; over all training phases at the end
  std::optional<double> train_loss;  // recent
  std::string message;               // the last thing that happened
  std::string solution_trouble;      // why its own program decides nothing now; empty: nothing
  std::string disk_trouble;          // a filesystem that does not answer; empty: they do
  std::string waiting_for;           // who is waited for, and for what; empty: nobody
  std::vector<WorkerReport> workers;
  std::vector<ServerReport> servers;
  std::uint32_t servers_count = 0;   // while it runs; processes may be more
  std::uint32_t servers_wanted = 0;  // other than that: they become so many
  std::vector<ActionReport> actions;
  std::vector<EpochReport> epoch_reports;
  Totals totals;
  Delivery delivery = Delivery::kExactlyOnce;
  std::optional<Outcome> outcome;
  std::vector<std::string> checkpoints;
  std::vector<FailureRecord> failures;
  std::vector<HostReport> hosts;
  std::vector<BudgetReport> budgets;
};

[[nodiscard]] std::string status_json(const JobReport& report);
[[nodiscard]] std::string summary_json(const JobReport& report);

}  // namespace antdt::ctl
