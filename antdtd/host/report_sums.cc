#include "antdtd/host/report_sums.h"

#include <algorithm>

namespace antdt::antdtd {

void ReportSums::add(const ProcessKey& key, const wire::Report& report, Duration period,
                     MonoTime now) {
  const auto [it, is_new] = sums_.try_emplace(key);
  Sum& sum = it->second;
  if (is_new) {
    sum.since = now;
    sum.due = now + period;
  }
  sum.report.batches += report.batches;
  sum.report.samples += report.samples;
  sum.report.data_us += report.data_us;
  sum.report.compute_us += report.compute_us;
  sum.report.wait_us += report.wait_us;
  sum.report.skipped += report.skipped;
  if (report.hops > 0) {
    const std::uint64_t least =
        sum.report.hops == 0 ? report.hop_least_us : sum.report.hop_least_us;
    sum.report.hop_least_us = std::min(least, report.hop_least_us);
    sum.report.hops += report.hops;
    sum.report.hop_us += report.hop_us;
  }
  sum.report.samples_total = report.samples_total;
  sum.report.samples_of_others = report.samples_of_others;
  sum.report.account = report.account;
  if (!report.traffic.hosts.empty()) sum.report.traffic = report.traffic;
  sum.report.step = report.step;
  sum.report.activity = report.activity;
  sum.report.io = report.io;
  sum.report.io_path = report.io_path;
  sum.report.io_done_bytes = report.io_done_bytes;
  sum.report.max_micro_batch = report.max_micro_batch;
  sum.report.io_total_bytes = report.io_total_bytes;
  sum.report.table_sums = report.table_sums;
  sum.report.shadow = report.shadow;
  sum.report.updates = report.updates;
}

std::optional<ReportSums::Due> ReportSums::take(const ProcessKey& key, MonoTime now) {
  const auto it = sums_.find(key);
  if (it == sums_.end()) return std::nullopt;
  Due due{key, metrics_of(it->second, now)};
  sums_.erase(it);
  return due;
}

wire::Metrics ReportSums::metrics_of(const Sum& sum, MonoTime now) {
  const auto window = std::chrono::duration_cast<std::chrono::milliseconds>(now - sum.since);
  return {sum.report, static_cast<std::uint32_t>(window.count())};
}

}  // namespace antdt::antdtd
