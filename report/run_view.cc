#include "report/run_view.h"

#include <filesystem>
#include <map>
#include <sstream>

#include "core/os/fs.h"
#include "core/os/rotating_file.h"
#include "core/sync_strategy.h"
#include "launcher/config/job_config.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/summary_view.h"
#include "shard_server/history/series.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;

page::WorkerPoint point_of(const shard_server::Moment& moment,
                           const shard_server::WorkerMoment& worker) {
  page::WorkerPoint point;
  point.time_s = moment.from_s + moment.seconds / 2;
  point.batch = static_cast<double>(worker.micro_batch) * worker.accumulation;
  const auto own_us = static_cast<double>(worker.data_us + worker.compute_us);
  if (own_us > 0) point.speed = static_cast<double>(worker.samples) / own_us * 1e6;
  return point;
}

// All attempts of a worker form one line.
std::vector<page::WorkerLine> lines_of(const shard_server::Series& series) {
  std::map<WorkerId, page::WorkerLine> by_worker;
  for (const shard_server::Moment& moment : series.moments) {
    for (const shard_server::WorkerMoment& worker : moment.workers) {
      page::WorkerLine& line = by_worker[worker.member.worker];
      if (line.name.empty()) line.name = to_string(worker.member.worker);
      line.points.push_back(point_of(moment, worker));
    }
  }
  std::vector<page::WorkerLine> lines;
  for (auto& [worker, line] : by_worker) lines.push_back(std::move(line));
  return lines;
}

// A line that was cut short (when the machine went down) is ignored.
std::vector<launcher::EventView> events_of(const std::string& run_dir) {
  std::vector<launcher::EventView> events;
  std::istringstream lines(read_rotated(run_dir + "/events.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    if (auto event = launcher::parse_event(line)) events.push_back(std::move(*event));
  }
  return events;
}

// What its workers measured; empty if there is no history.
Result<shard_server::Series> series_of(const std::string& run_dir) {
  std::error_code ignored;
  const auto control = launcher::read_control(run_dir);
  const std::string history = (control ? control->state_dir : run_dir) + "/history.db";
  if (!fs::exists(history, ignored)) return shard_server::Series{};
  return shard_server::read_series(history);
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e6);
}

bool has_summary(const std::string& run_dir) {
  std::error_code ignored;
  return fs::exists(run_dir + "/summary.json", ignored);
}

Result<report::Bill> bill_from(const std::string& run_dir, const report::Summary& summary,
                               const shard_server::Series& series) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  const auto sync = by_name<SyncStrategy>(config.trainer.sync);
  return report::bill_of(summary, series, sync.value_or(SyncStrategy::kAllReduce));
}

// "a", "a (east)" or "domain east".
std::string place_of(const std::string& host, const std::string& domain) {
  if (domain.empty()) return host.empty() ? "further hosts" : host;
  return host.empty() ? "domain " + domain : fmt::format("{} ({})", host, domain);
}

page::TableView table_of(const report::Traffic& t) {
  page::TableView view;
  view.above.push_back(
      fmt::format("MB sent: gradients {}, parameters {}, slots {}, healing {}, other {}",
                  megabytes(t.gradients_bytes), megabytes(t.parameters_bytes),
                  megabytes(t.slots_bytes), megabytes(t.healing_bytes), megabytes(t.other_bytes)));
  view.header = {"from", "to", "sent MB#", "received MB#", "waited s#"};
  view.above.push_back(
      fmt::format("MB of these through shared memory: {}", megabytes(t.shared_memory_bytes)));
  if (t.hosts_left_out > 0) {
    view.above.push_back(
        fmt::format("{} more pairs of hosts exchanged less than these", t.hosts_left_out));
  }
  for (const auto* list : {&t.domains, &t.hosts}) {
    for (const report::TrafficBetween& link : *list) {
      view.rows.push_back({place_of(link.from, link.from_domain), place_of(link.to, link.to_domain),
                           megabytes(link.sent_bytes), megabytes(link.received_bytes),
                           fmt::format("{:.1f}", link.waited_seconds)});
    }
  }
  return view;
}

}  // namespace

Result<page::RunView> read_run_view(const std::string& run_dir, const std::string& heading) {
  page::RunView view;
  view.heading = heading;
  ANTDT_TRY(const shard_server::Series series, series_of(run_dir));
  view.workers = lines_of(series);
  view.width_s = series.width_s;
  view.events = events_of(run_dir);
  if (!has_summary(run_dir)) return view;
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  view.summary = launcher::summary_lines(summary);
  ANTDT_TRY(const report::Bill bill, bill_from(run_dir, summary, series));
  report::BillTable table = report::table_of(bill);
  if (summary.traffic) view.traffic = table_of(*summary.traffic);
  view.bill = {std::move(table.sums), std::move(table.header), std::move(table.rows), {}};
  return view;
}

Result<std::optional<report::Bill>> read_bill(const std::string& run_dir) {
  if (!has_summary(run_dir)) return std::nullopt;
  ANTDT_TRY(const shard_server::Series series, series_of(run_dir));
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  ANTDT_TRY(report::Bill bill, bill_from(run_dir, summary, series));
  return std::optional(std::move(bill));
}

}  // namespace antdt::cli
