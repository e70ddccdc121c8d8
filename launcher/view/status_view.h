// A job's status and events as lines of text. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/result.h"

namespace antdt::launcher {

// Whether a process of the worker runs, or is being started.
[[nodiscard]] bool is_running(const report::WorkerStatus& worker);
// The monitor's verdict with what it was seen by.
[[nodiscard]] std::string told_verdict(const report::WorkerStatus& worker);

// The error (kCorrupt) names the field that is not as in a status.
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

// How many failures or actions there were, of which a report has the newest. Reports of older
// releases do not count them.
template <class T>
[[nodiscard]] std::uint64_t in_all(const std::vector<T>& newest, std::uint64_t count) {
  return std::max<std::uint64_t>(newest.size(), count);
}

// The hosts whose agents do not answer while a process waits for a host with room.
[[nodiscard]] std::vector<std::string> awaited_hosts(const report::Status& status);
// "epoch 1/2  training  43%  12,345 samples/s  ETA 1m 15s  loss 0.5123"
[[nodiscard]] std::string progress_line(const report::Status& status);
// "paused: the disk of the journal is full: make room ...", for a job that is paused
[[nodiscard]] std::string paused_line(const report::Status& status);
// "w0 on h1: writing the checkpoint: 3.1 of 12.4 GB, 96 MB/s", for each process that does such a
// thing
[[nodiscard]] std::vector<std::string> io_lines(const report::Status& status);
// A header, and a line for each worker with its last event, if there is one.
[[nodiscard]] std::vector<std::string> worker_table(const report::Status& status,
                                                    const std::vector<EventView>& events);
// A header and a line for each parameter server; empty if there are none.
[[nodiscard]] std::vector<std::string> server_table(
    const std::vector<report::ServerStatus>& servers);
// An event as a line of its own: "   12.3s  action  adjust-batch w3 (...)"
[[nodiscard]] std::string event_line(const EventView& event);
// Whether the event is printed without a terminal, too.
[[nodiscard]] bool is_notable(const EventView& event);

// For which other host, or domain if there are any, workers waited longest; "" if they exchanged
// nothing with another one, or if nothing is known of it.
[[nodiscard]] std::string link_line(const std::optional<report::Traffic>& traffic);

// Gaia's threshold and what the newest visit found; "" where it is as in job.toml and no replica
// visits another domain.
[[nodiscard]] std::string threshold_line(const std::optional<report::UpdateThreshold>& threshold);

// The whole view for a terminal of `width` columns; `events` are the last few.
[[nodiscard]] std::vector<std::string> live_block(const report::Status& status,
                                                  const std::vector<EventView>& events,
                                                  std::size_t width);
// The same for `antdt status`, with failures and with hosts that have something to report. `events`
// are all known events, because each worker's last one is shown.
[[nodiscard]] std::vector<std::string> status_table(const report::Status& status,
                                                    const std::vector<EventView>& events);
// A failure as one line: time, worker, class, cause, and what followed.
[[nodiscard]] std::string failure_line(const report::Failure& failure);
// " from step 1,200", where training lost steps by the failure; else empty.
[[nodiscard]] std::string from_where(const report::Failure& failure);
// How many samples the program skipped, why, and where they are listed.
[[nodiscard]] std::string skipped_line(std::vector<report::Skipped> skipped);
// The newest of `events` that concerns this worker.
[[nodiscard]] const EventView* last_event(const std::vector<EventView>& events,
                                          const std::string& worker);
// `status_json` with "last_event" added to each worker (null if there is none).
[[nodiscard]] std::string with_last_events(const std::string& status_json,
                                           const std::vector<EventView>& events);

}  // namespace antdt::launcher
