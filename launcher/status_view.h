// A job's status and events as lines of text. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct WorkerStatus {
  std::string id;
  std::optional<std::uint32_t> rank;  // none: not a member now
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t attempt = 0;
  std::string state;
  std::uint64_t batch = 0;  // samples of a step
  double samples_per_second = 0;
  std::string verdict;
  bool straggler = false;                  // it makes others wait
  std::string seen;                        // what speaks for the cause in the verdict
  std::optional<double> tried_again_in_s;  // waits for a host
  std::string io;                          // what it reads or writes now, and how far it is
  [[nodiscard]] bool running() const;
};

// A parameter server.
struct ServerStatus {
  std::string id, host;
  std::uint64_t pid = 0;
  std::uint64_t attempt = 0;
  std::string state;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  double service_us_p50 = 0;  // of the last second
  double service_us_p99 = 0;
  std::string role;  // of a process of one that is two: "primary", "backup", ...
  std::string verdict;
  std::string io;  // what it reads or writes now, and how far it is
};

struct FailureView {
  double time_s = 0;
  std::string worker, host;
  std::string cls;     // "signal", "oom", "host", ...
  std::string cause;   // a sentence; the log lines that show it may follow
  bool first = false;  // the cause of what failed with it
  std::optional<double> recovered_in_s;
};

struct HostView {
  std::string name;
  std::uint64_t room = 0;  // workers it takes in all
  bool up = false;
  bool closed = false;     // evicted
  bool probation = false;  // failed often lately: avoided
};

struct BudgetView {
  std::uint64_t limit = 0;
  std::uint64_t left = 0;
};

struct ActionView {
  std::uint64_t number = 0;  // from 1; 0: an older job daemon, which does not say
  double time_s = 0;
  std::string kind, target, reason, outcome;
};

// What a job daemon answers to StatusRequest; of an ended run's summary the
// fields that both have.
struct StatusView {
  std::string job;
  std::string state;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;  // from 0
  std::uint64_t epochs = 0;
  std::uint64_t samples_done = 0;
  std::uint64_t samples_total = 0;
  double samples_per_second = 0;
  std::optional<double> train_loss;
  std::optional<double> eta_seconds;
  std::map<std::string, double> last_eval;  // auc, log_loss, accuracy
  std::string message;
  std::uint64_t lineage = 0;
  std::string waiting_for;       // who is waited for, and for what
  std::string disk_trouble;      // a filesystem of the run that does not answer
  std::string solution_trouble;  // why a solution of the user's own decides nothing now
  std::vector<WorkerStatus> workers;
  std::vector<ServerStatus> servers;  // none: the workers hold the model
  std::uint64_t servers_count = 0;
  std::uint64_t servers_wanted = 0;  // that they are about to become; 0: they stay as many
  std::vector<FailureView> failures;
  std::vector<HostView> hosts;
  std::vector<ActionView> actions;
  std::map<std::string, BudgetView> budgets;  // by class of failure
};

// Fields that are missing keep their defaults; kCorrupt for what is no object.
[[nodiscard]] Result<StatusView> parse_status(const std::string& json);

struct EventView {
  double time_s = 0;  // since the job began
  std::string kind;   // "action", "epoch", "evaluated", "host-lost", ...
  std::string text;
};
[[nodiscard]] Result<EventView> parse_event(const std::string& json);

// "epoch 1/2  training  43%  12,345 samples/s  ETA 1m 15s  loss 0.5123"
[[nodiscard]] std::string progress_line(const StatusView& status);
// "w0 on h1: writing the checkpoint: 3.1 of 12.4 GB, 96 MB/s", for each that does such a thing
[[nodiscard]] std::vector<std::string> io_lines(const StatusView& status);
// A header and a line for each worker, with its last event if there are any.
[[nodiscard]] std::vector<std::string> worker_table(const StatusView& status,
                                                    const std::vector<EventView>& events);
// A header and a line for each parameter server; nothing where there are none.
[[nodiscard]] std::vector<std::string> server_table(const StatusView& status);
// "   12.3s  action  adjust-batch w3 (...)": as a line of its own
[[nodiscard]] std::string event_line(const EventView& event);
// Whether people without a terminal are told of it as well.
[[nodiscard]] bool is_notable(const EventView& event);

// All of it, for a terminal of `width` columns; `events` are the last few.
[[nodiscard]] std::vector<std::string> live_block(const StatusView& status,
                                                  const std::vector<EventView>& events,
                                                  std::size_t width);
// The same for `antdt status`, with failures and hosts where there is something
// to say of them. `events` are all that are known: each worker's last is shown.
[[nodiscard]] std::vector<std::string> status_table(const StatusView& status,
                                                    const std::vector<EventView>& events);
// One failure as a line: when, who, class, cause, and how it went on.
[[nodiscard]] std::string failure_line(const FailureView& failure);
// The newest of `events` that is about this worker.
[[nodiscard]] const EventView* last_event(const std::vector<EventView>& events,
                                          const std::string& worker);
// `status_json` with "last_event" in each worker (null where there is none).
[[nodiscard]] std::string with_last_events(const std::string& status_json,
                                           const std::vector<EventView>& events);

}  // namespace antdt::launcher
