// A job's status and events as lines of text. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"

namespace antdt::launcher {

// Whether a process of it runs, or is being started.
[[nodiscard]] bool is_running(const report::WorkerStatus& worker);

// kCorrupt, with the field, for what is no status.
[[nodiscard]] Result<report::Status> parse_status(const std::string& json);

struct EventView {
  double time_s = 0;  // since the job began
  std::string kind;   // "action", "epoch", "evaluated", "host-lost", ...
  std::string text;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("time_s", m.time_s);
    v("kind", m.kind);
    v("text", m.text);
  }
};
[[nodiscard]] Result<EventView> parse_event(const std::string& json);

// "epoch 1/2  training  43%  12,345 samples/s  ETA 1m 15s  loss 0.5123"
[[nodiscard]] std::string progress_line(const report::Status& status);
// "w0 on h1: writing the checkpoint: 3.1 of 12.4 GB, 96 MB/s", for each that does such a thing
[[nodiscard]] std::vector<std::string> io_lines(const report::Status& status);
// A header and a line for each worker, with its last event if there are any.
[[nodiscard]] std::vector<std::string> worker_table(const report::Status& status,
                                                    const std::vector<EventView>& events);
// A header and a line for each parameter server; nothing where there are none.
[[nodiscard]] std::vector<std::string> server_table(
    const std::vector<report::ServerStatus>& servers);
// "   12.3s  action  adjust-batch w3 (...)": as a line of its own
[[nodiscard]] std::string event_line(const EventView& event);
// Whether people without a terminal are told of it as well.
[[nodiscard]] bool is_notable(const EventView& event);

// All of it, for a terminal of `width` columns; `events` are the last few.
[[nodiscard]] std::vector<std::string> live_block(const report::Status& status,
                                                  const std::vector<EventView>& events,
                                                  std::size_t width);
// The same for `antdt status`, with failures and hosts where there is something
// to say of them. `events` are all that are known: each worker's last is shown.
[[nodiscard]] std::vector<std::string> status_table(const report::Status& status,
                                                    const std::vector<EventView>& events);
// One failure as a line: when, who, class, cause, and how it went on.
[[nodiscard]] std::string failure_line(const report::Failure& failure);
// The newest of `events` that is about this worker.
[[nodiscard]] const EventView* last_event(const std::vector<EventView>& events,
                                          const std::string& worker);
// `status_json` with "last_event" in each worker (null where there is none).
[[nodiscard]] std::string with_last_events(const std::string& status_json,
                                           const std::vector<EventView>& events);

}  // namespace antdt::launcher
