#include "launcher/commands/show/run_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

using launcher::WorkerLog;

constexpr Duration kAskHosts = std::chrono::seconds(1);

// Empty if nobody knows them.
std::vector<LoggingProcess> known_processes(const std::string& run_dir) {
  std::vector<LoggingProcess> known;
  const auto processes = processes_of(run_dir);
  if (!processes) return known;
  const auto add = [&](const auto& process) {
    const auto id = parse_worker_id(process.id);
    const Attempt attempt{static_cast<std::uint32_t>(process.attempt)};
    if (id) known.push_back({*id, attempt, process.host, process.pid != 0});
  };
  std::ranges::for_each(processes->workers, add);
  std::ranges::for_each(processes->servers, add);
  return known;
}

bool is_among(const std::vector<WorkerLog>& logs, WorkerId worker, Attempt attempt) {
  return std::ranges::any_of(
      logs, [&](const WorkerLog& log) { return log.worker == worker && log.attempt == attempt; });
}

}  // namespace

Result<Processes> processes_of(const std::string& run_dir) {
  if (present_state(run_dir) == RunState::kRunning) {
    ANTDT_TRY(RunningJob job, reach(run_dir));
    ANTDT_TRY(report::Status status, status_of(job));
    return Processes{std::move(status.workers), std::move(status.servers)};
  }
  ANTDT_TRY(report::Summary summary, launcher::read_summary(run_dir));
  return Processes{launcher::workers_of(summary), std::move(summary.servers)};
}

bool is_asked_for(const LoggingProcess& process, const launcher::LogFilter& filter) {
  return process.started && filter.worker.value_or(process.worker) == process.worker &&
         filter.attempt.value_or(process.attempt) == process.attempt;
}

Result<RunLogs> RunLogs::open(const std::string& run_dir, const launcher::LogFilter& filter,
                              bool follow) {
  RunLogs logs(run_dir);
  const auto here = launcher::find_logs(run_dir);
  logs.processes_ = known_processes(run_dir);
  std::ranges::copy_if(logs.processes_, std::back_inserter(logs.expected_),
                       [&](const LoggingProcess& p) { return is_asked_for(p, filter); });
  const bool all_here = !logs.processes_.empty() && !launcher::select(here, filter).empty() &&
                        logs.without_files(here).empty();
  if (all_here && !follow) return logs;
  ANTDT_TRY(logs.hosts_, HostLogs::of_run(run_dir));
  if (logs.hosts_->none()) logs.hosts_.reset();
  return logs;
}

std::vector<WorkerLog> RunLogs::find() {
  std::vector<WorkerLog> all = launcher::find_logs(run_dir_);
  const MonoTime now = clock_.now();
  if (hosts_ && now - asked_ >= kAskHosts) {
    asked_ = now;
    elsewhere_ = hosts_->find();
  }
  for (const WorkerLog& log : elsewhere_) {
    const bool known = std::ranges::any_of(all, [&](const WorkerLog& other) {
      return other.worker == log.worker && other.attempt == log.attempt && other.err == log.err;
    });
    if (!known) all.push_back(log);
  }
  return all;
}

std::function<std::vector<std::string>(bool last)> RunLogs::reader(
    const WorkerLog& log, std::optional<std::size_t> lines) {
  if (log.host.empty()) {
    const auto here = std::make_shared<launcher::LogReader>(log.path, lines);
    return [here](bool last) { return here->read(last); };
  }
  const auto there = std::make_shared<HostLogReader>(*hosts_, log, lines);
  return [there](bool last) { return there->read(last); };
}

std::vector<std::string> RunLogs::missing(const std::vector<WorkerLog>& found) const {
  std::vector<std::string> lines;
  if (!hosts_ || hosts_->troubles().empty()) return lines;
  for (const LoggingProcess& p : without_files(found)) {
    lines.push_back(fmt::format("the output of {} is on {}: {}/logs/{}.{}.out and .err", p.worker,
                                p.host, run_dir_, p.worker, p.attempt));
  }
  if (lines.empty() && !found.empty()) return lines;
  for (const auto& [host, trouble] : hosts_->troubles()) {
    lines.push_back(fmt::format("{}/logs on {} cannot be read: {}", run_dir_, host, trouble));
  }
  return lines;
}

std::vector<LoggingProcess> RunLogs::without_files(const std::vector<WorkerLog>& found) const {
  std::vector<LoggingProcess> without;
  std::ranges::copy_if(expected_, std::back_inserter(without), [&](const LoggingProcess& p) {
    return !is_among(found, p.worker, p.attempt);
  });
  return without;
}

RunOutput::RunOutput(RunLogs& logs, launcher::LogFilter filter, std::optional<std::size_t> lines,
                     bool several)
    : logs_(logs), filter_(std::move(filter)), lines_(lines), several_(several) {
  for (const LoggingProcess& process : logs_.processes()) workers_.insert(process.worker);
}

void RunOutput::find_new() {
  for (const WorkerLog& log : launcher::select(logs_.find(), filter_)) {
    if (!known_.insert({log.host, log.path}).second) continue;
    open_.push_back({log, logs_.reader(log, first_ ? lines_ : std::nullopt)});
    workers_.insert(log.worker);
  }
  first_ = false;
}

std::vector<std::string> RunOutput::read(bool last) {
  find_new();
  std::vector<std::string> lines;
  const bool several = !filter_.worker && (several_ || workers_.size() > 1);
  for (Open& open : open_) {
    const std::string prefix = several ? fmt::format("{}: ", open.log.worker) : std::string();
    for (const std::string& line : open.read(last)) lines.push_back(prefix + line);
  }
  return lines;
}

}  // namespace antdt::cli
