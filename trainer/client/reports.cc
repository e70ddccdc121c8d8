#include "trainer/client/reports.h"

#include <utility>

namespace antdt::client {
namespace {

std::uint64_t microseconds(Duration duration) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return us > 0 ? static_cast<std::uint64_t>(us) : 0;
}

void add_hop(wire::Report& report, std::uint64_t us) {
  report.hop_least_us = report.hops == 0 ? us : std::min(report.hop_least_us, us);
  ++report.hops;
  report.hop_us += us;
}

bool due(const std::optional<MonoTime>& sent_at, MonoTime now) {
  return !sent_at || now >= *sent_at + Reports::kReportEvery;
}

}  // namespace

void Reports::begin_pulse(MonoTime now) {
  if (!pulse_at_) pulse_at_ = now + kPulseEvery;
}

void Reports::add(const BatchTimes& times) {
  if (times.in_model) samples_total_ += times.samples;
  samples_of_others_ += times.of_others;
  has_news_ = true;
  if (times.counts) {
    report_.batches += 1;
    report_.samples += times.samples;
    report_.data_us += microseconds(times.data);
    report_.compute_us += microseconds(times.compute);
    report_.wait_us += microseconds(times.wait);
  } else {
    report_.skipped += 1;
  }
  if (times.hop) add_hop(report_, microseconds(*times.hop));
}

void Reports::add(const wire::TimeAccount& account) {
  account_ = account;
  has_news_ = true;
}

void Reports::add(const wire::Progress& progress, Generation generation) {
  wire::StepHistory history = progress.history;
  const bool goes_on = progress_ && progress_->generation == generation;
  if (history.runs.empty() && goes_on) history = std::move(progress_->what.history);
  progress_ = Progress{progress, generation};
  progress_->what.history = std::move(history);
}

void Reports::flush(Generation current, ShardFeed& feed, MonoTime now, Effects& out) {
  if (pulse_at_ && now >= *pulse_at_) send_report(current, now, out);
  flush_report(current, now, out);
  flush_progress(feed, now, out);
}

void Reports::flush_report(Generation current, MonoTime now, Effects& out) {
  if (has_news_ && due(report_sent_at_, now)) send_report(current, now, out);
}

void Reports::flush_progress(ShardFeed& feed, MonoTime now, Effects& out) {
  if (!progress_ || !due(progress_sent_at_, now)) return;
  feed.place_was_sent(progress_->what.phase, progress_->what.place);
  out.emplace_back(SendMessage{progress_->generation, 0, std::move(progress_->what)});
  progress_.reset();
  progress_sent_at_ = now;
}

void Reports::send_report(Generation current, MonoTime now, Effects& out) {
  report_.samples_total = samples_total_;
  report_.samples_of_others = samples_of_others_;
  report_.account = account_;
  report_.step = step_;
  report_.activity = activity_;
  report_.io = io_.what;
  report_.io_path = io_.path;
  report_.io_done_bytes = io_.done_bytes;
  report_.io_total_bytes = io_.total_bytes;
  const auto lines = static_cast<std::int64_t>(traffic_.hosts.size());
  if (!traffic_sent_at_ || now >= *traffic_sent_at_ + kTrafficEvery + lines * kTrafficEveryMore) {
    report_.traffic = traffic_;
    traffic_sent_at_ = now;
  }
  report_.throttle_permille = throttle_permille_;
  report_.max_micro_batch = max_micro_batch_;
  report_.table_sums = table_sums_;
  report_.shadow = shadow_;
  report_.updates = updates_;
  out.emplace_back(SendMessage{current, 0, std::exchange(report_, {})});
  has_news_ = false;
  report_sent_at_ = now;
  if (pulse_at_) pulse_at_ = now + kPulseEvery;
}

wire::Bye Reports::end(wire::Bye last, Generation current, ShardFeed& feed, MonoTime now,
                       Effects& out) {
  pulse_at_.reset();
  report_sent_at_.reset();
  progress_sent_at_.reset();
  flush(current, feed, now, out);
  if (last.samples_total == 0) last.samples_total = samples_total_;
  last.samples_of_others = samples_of_others_;
  if (last.account.startup == 0 && last.account.compute == 0) last.account = account_;
  last.table_sums = table_sums_;
  last.traffic = traffic_;
  last.shadow = shadow_;
  last.updates = updates_;
  return last;
}

std::optional<MonoTime> Reports::deadline() const {
  std::optional<MonoTime> first = pulse_at_;
  const auto consider = [&](MonoTime when) { first = first ? std::min(*first, when) : when; };
  if (has_news_ && report_sent_at_) consider(*report_sent_at_ + kReportEvery);
  if (progress_ && progress_sent_at_) consider(*progress_sent_at_ + kReportEvery);
  return first;
}

}  // namespace antdt::client
