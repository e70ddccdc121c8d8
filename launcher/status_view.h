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
};

// What a job daemon answers to StatusRequest.
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
  std::vector<WorkerStatus> workers;
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
// A header and a line for each worker.
[[nodiscard]] std::vector<std::string> worker_table(const StatusView& status);
// "   12.3s  action  adjust-batch w3 (...)": as a line of its own
[[nodiscard]] std::string event_line(const EventView& event);
// Whether people without a terminal are told of it as well.
[[nodiscard]] bool is_notable(const EventView& event);

// All of it, for a terminal of `width` columns; `events` are the last few.
[[nodiscard]] std::vector<std::string> live_block(const StatusView& status,
                                                  const std::vector<EventView>& events,
                                                  std::size_t width);
// The same for `antdt status`.
[[nodiscard]] std::vector<std::string> status_table(const StatusView& status);

}  // namespace antdt::launcher
