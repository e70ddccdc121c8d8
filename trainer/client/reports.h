// A worker's reports: times and samples of its batches, its time account, its present activity, its
// progress. Reports are added up and sent at most every kReportEvery. From the welcome to the bye,
// something is reported at least every kPulseEvery, whatever the training thread does, so that a
// process that is stopped falls silent and a process whose training thread is stuck does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/messages.h"
#include "trainer/client/client.h"
#include "trainer/client/effects.h"
#include "trainer/client/shard_feed.h"

namespace antdt::client {

class Reports {
 public:
  static constexpr Duration kReportEvery = std::chrono::milliseconds(50);
  // How often traffic is told, and how much later for each of its lines: the job daemon of 1,000
  // workers hears at most 20,000 lines a second.
  static constexpr Duration kTrafficEvery = std::chrono::milliseconds(950);
  static constexpr Duration kTrafficEveryMore = std::chrono::milliseconds(50);
  static constexpr Duration kPulseEvery = std::chrono::seconds(1);

  // The worker was welcomed, so its regular reports begin, if they have not begun.
  void begin_pulse(MonoTime now);
  void add(const BatchTimes& times);
  void add(const wire::TimeAccount& account);
  // The latest progress counts; it keeps the history of the previous one if it has none of its own.
  void add(const wire::Progress& progress, Generation generation);
  void drop_progress() { progress_.reset(); }
  // Sends what is due. A place that is sent with a progress need not be sent with a fetch.
  void flush_report(Generation current, MonoTime now, Effects& out);
  void flush_progress(ShardFeed& feed, MonoTime now, Effects& out);
  // Flushes both, and sends the regular report.
  void flush(Generation current, ShardFeed& feed, MonoTime now, Effects& out);
  // Sends what is left, and nothing afterwards; fills in `last`.
  [[nodiscard]] wire::Bye end(wire::Bye last, Generation current, ShardFeed& feed, MonoTime now,
                              Effects& out);
  [[nodiscard]] std::optional<MonoTime> deadline() const;

  void set_step(Step step) { step_ = step; }  // the last step that the training thread reported
  void set_activity(const char* activity) { activity_ = activity; }
  void set_io(Io io) { io_ = std::move(io); }
  void set_traffic(wire::TrafficSums traffic) { traffic_ = std::move(traffic); }
  void set_max_micro_batch(std::uint32_t records) { max_micro_batch_ = records; }
  void set_table_sums(const wire::TableSums& sums) { table_sums_ = sums; }
  void set_shadow(const wire::ShadowSums& sums) { shadow_ = sums; }
  void set_updates(const wire::UpdateSums& sums) { updates_ = sums; }
  void set_throttle(double share) {
    throttle_permille_ = share < 1 ? std::max(1U, static_cast<std::uint32_t>(1000 * share)) : 0;
  }

 private:
  struct Progress {
    wire::Progress what;
    Generation generation;  // a place counts only in its generation
  };
  void send_report(Generation current, MonoTime now, Effects& out);

  wire::Report report_;  // sums since the last report was sent
  bool has_news_ = false;
  std::optional<Progress> progress_;  // the latest since one was sent
  std::optional<MonoTime> report_sent_at_, progress_sent_at_;
  std::optional<MonoTime> pulse_at_;  // when to report even if nothing is new; empty: not now
  std::uint64_t samples_total_ = 0;
  std::uint64_t samples_of_others_ = 0;
  wire::TimeAccount account_;
  Step step_;
  const char* activity_ = "startup";
  Io io_;
  wire::TrafficSums traffic_;
  std::optional<MonoTime> traffic_sent_at_;
  std::uint32_t throttle_permille_ = 0;
  std::uint32_t max_micro_batch_ = 0;
  wire::TableSums table_sums_;
  wire::ShadowSums shadow_;
  wire::UpdateSums updates_;
};

}  // namespace antdt::client
