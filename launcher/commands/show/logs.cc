// antdt logs: shows what the workers of a run have written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <thread>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/host_logs.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/summary_view.h"
#include "launcher/view/worker_logs.h"

namespace antdt::cli {

namespace {

using launcher::WorkerLog;

struct LogsOptions {
  std::string job;
  std::string worker;
  std::optional<std::uint64_t> rank;
  std::optional<std::uint32_t> attempt;
  bool out = false;
  bool err = false;
  bool follow = false;
  std::optional<std::size_t> lines;
};

constexpr Duration kPoll = std::chrono::milliseconds(200);
// how many existing lines are shown by default when following
constexpr std::size_t kFollowedLines = 10;

// The processes according to the job daemon, or to the summary.
struct Processes {
  std::vector<report::WorkerStatus> workers;
  std::vector<report::ServerStatus> servers;
};
Result<Processes> processes_of(const std::string& run_dir) {
  if (present_state(run_dir) == RunState::kRunning) {
    ANTDT_TRY(RunningJob job, reach(run_dir));
    ANTDT_TRY(report::Status status, status_of(job));
    return Processes{std::move(status.workers), std::move(status.servers)};
  }
  ANTDT_TRY(report::Summary summary, launcher::read_summary(run_dir));
  return Processes{launcher::workers_of(summary), std::move(summary.servers)};
}

Result<launcher::LogFilter> filter_of(const LogsOptions& options, const std::string& run_dir) {
  launcher::LogFilter filter;
  if (options.out != options.err) filter = {{}, {}, options.out, options.err};
  if (options.attempt) filter.attempt = Attempt{*options.attempt};
  std::string id = options.worker;
  if (options.rank) {
    ANTDT_TRY(const Processes found, processes_of(run_dir));
    const auto& workers = found.workers;
    const auto worker = std::ranges::find(workers, options.rank, &report::WorkerStatus::rank);
    if (worker == workers.end()) {
      return fail(ErrorKind::kUsage, "no worker of {} has rank {} now: antdt status lists them",
                  run_dir, *options.rank);
    }
    id = worker->id;
  }
  if (id.empty()) return filter;
  filter.worker = parse_worker_id(id);
  if (!filter.worker) return fail(ErrorKind::kUsage, "'{}' is no worker id, such as w3", id);
  return filter;
}

// Where the output of a requested worker or server must be.
struct Expected {
  WorkerId worker;
  Attempt attempt;
  std::string host;
};

// For all processes that run, or ran last; empty if nobody knows them.
std::optional<std::vector<Expected>> expected_of(const launcher::LogFilter& filter,
                                                 const std::string& run_dir) {
  const auto processes = processes_of(run_dir);
  if (!processes) return std::nullopt;
  std::vector<Expected> expected;
  const auto add = [&](const auto& process) {
    const auto id = parse_worker_id(process.id);
    if (!id || process.pid == 0 || (filter.worker && *filter.worker != *id)) return;
    const Attempt attempt{static_cast<std::uint32_t>(process.attempt)};
    if (filter.attempt.value_or(attempt) == attempt) {
      expected.push_back({*id, attempt, process.host});
    }
  };
  std::ranges::for_each(processes->workers, add);
  std::ranges::for_each(processes->servers, add);
  return expected;
}

bool is_among(const std::vector<WorkerLog>& logs, WorkerId worker, Attempt attempt) {
  return std::ranges::any_of(
      logs, [&](const WorkerLog& log) { return log.worker == worker && log.attempt == attempt; });
}

// The logs of this host, and of other hosts if some logs are not here.
class Logs {
 public:
  [[nodiscard]] static Result<Logs> open(const std::string& run_dir,
                                         const launcher::LogFilter& filter, bool follow) {
    Logs logs(run_dir);
    const auto here = launcher::find_logs(run_dir);
    const auto expected = expected_of(filter, run_dir);
    const bool all_here = expected && !launcher::select(here, filter).empty() &&
                          std::ranges::all_of(*expected, [&](const Expected& e) {
                            return is_among(here, e.worker, e.attempt);
                          });
    if (expected) logs.expected_ = *expected;
    if (all_here && !follow) return logs;
    ANTDT_TRY(logs.hosts_, HostLogs::of_run(run_dir));
    if (logs.hosts_->none()) logs.hosts_.reset();
    return logs;
  }

  // Hosts are asked seldom, so new logs on them are found with a delay.
  [[nodiscard]] std::vector<WorkerLog> find() {
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

  [[nodiscard]] std::function<std::vector<std::string>(bool last)> reader(
      const WorkerLog& log, std::optional<std::size_t> lines) {
    if (log.host.empty()) {
      const auto here = std::make_shared<launcher::LogReader>(log.path, lines);
      return [here](bool last) { return here->read(last); };
    }
    const auto there = std::make_shared<HostLogReader>(*hosts_, log, lines);
    return [there](bool last) { return there->read(last); };
  }

  // One sentence, with the reason, for each requested log that cannot be read.
  [[nodiscard]] std::vector<std::string> missing(const std::vector<WorkerLog>& found) const {
    std::vector<std::string> lines;
    for (const Expected& e : expected_) {
      if (is_among(found, e.worker, e.attempt)) continue;
      lines.push_back(fmt::format("the output of {} is on {}: {}/logs/{}.{}.out and .err", e.worker,
                                  e.host, run_dir_, e.worker, e.attempt));
    }
    if (!hosts_ || (lines.empty() && !found.empty())) return lines;
    for (const auto& [host, trouble] : hosts_->troubles()) {
      lines.push_back(fmt::format("{}/logs on {} cannot be read: {}", run_dir_, host, trouble));
    }
    return lines;
  }

 private:
  explicit Logs(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  static constexpr Duration kAskHosts = std::chrono::seconds(1);

  std::string run_dir_;
  std::vector<Expected> expected_;
  std::unique_ptr<HostLogs> hosts_;  // null: all logs are on this host
  SteadyClock clock_;
  MonoTime asked_{};
  std::vector<WorkerLog> elsewhere_;
};

class Printer {
 public:
  Printer(Logs& logs, launcher::LogFilter filter, std::optional<std::size_t> lines)
      : logs_(logs), filter_(std::move(filter)), lines_(lines) {}

  // Logs that did not exist at the last call are read from their beginning.
  void find_new() {
    for (const WorkerLog& log : launcher::select(logs_.find(), filter_)) {
      if (!known_.insert({log.host, log.path}).second) continue;
      open_.push_back({log, logs_.reader(log, first_ ? lines_ : std::nullopt)});
      workers_.insert(log.worker);
    }
    first_ = false;
  }

  void print(bool last) {
    for (Open& open : open_) {
      const std::string prefix =
          workers_.size() > 1 ? fmt::format("{}: ", open.log.worker) : std::string();
      for (const std::string& line : open.read(last)) fmt::print("{}{}\n", prefix, line);
    }
    std::fflush(stdout);
  }

 private:
  struct Open {
    WorkerLog log;
    std::function<std::vector<std::string>(bool last)> read;
  };
  Logs& logs_;
  launcher::LogFilter filter_;
  std::optional<std::size_t> lines_;
  bool first_ = true;
  std::set<std::pair<std::string, std::string>> known_;  // host and path
  std::set<WorkerId> workers_;
  std::list<Open> open_;
};

Status check_there(const launcher::LogFilter& filter, const std::string& run_dir,
                   const std::vector<WorkerLog>& all) {
  if (!launcher::select(all, filter).empty()) return {};
  std::set<std::string> names;
  for (const WorkerLog& log : all) names.insert(fmt::format("{}.{}", log.worker, log.attempt));
  return fail(ErrorKind::kUsage, "{}/logs has no such output; there is that of {} (WORKER.ATTEMPT)",
              run_dir, names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", ")));
}

void follow(const std::string& run_dir, Printer& printer) {
  while (state_of(run_dir) == RunState::kRunning) {
    printer.find_new();
    printer.print(false);
    std::this_thread::sleep_for(kPoll);
  }
}

// Shows what can be read, even if some logs cannot.
Status logs(const LogsOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.job));
  ANTDT_TRY(const launcher::LogFilter filter, filter_of(options, run_dir));
  ANTDT_TRY(Logs logs, Logs::open(run_dir, filter, options.follow));
  const auto all = logs.find();
  const auto missing = logs.missing(all);
  for (const std::string& line : missing) fmt::print(stderr, "{}\n", line);
  if (!options.follow && missing.empty()) ANTDT_RETURN_IF_ERROR(check_there(filter, run_dir, all));
  Printer printer(logs, filter,
                  options.follow ? options.lines.value_or(kFollowedLines) : options.lines);
  if (options.follow) follow(run_dir, printer);
  printer.find_new();
  printer.print(true);
  if (options.follow || missing.empty()) return {};
  return fail(ErrorKind::kUnreachable, "not all that was asked for could be read");
}

}  // namespace

void add_logs(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", "Show what the workers of a run have written");
  command->add_option("JOB", options->job, kJobHelp)->required();
  CLI::Option* worker =
      command->add_option("--worker", options->worker, "of this one, such as w3")->type_name("ID");
  command->add_option("--rank", options->rank, "of the one that has this rank now")
      ->type_name("R")
      ->excludes(worker);
  command->add_option("--attempt", options->attempt, "of this attempt (default: the newest)")
      ->type_name("A");
  command->add_flag("--out", options->out, "standard output only");
  command->add_flag("--err", options->err, "standard error only");
  command->add_flag("-f,--follow", options->follow, "go on until the run ends");
  command
      ->add_option("--lines", options->lines, "the last N of each file (default: all; with -f 10)")
      ->type_name("N");
  command->callback([options, &exit_code] {
    if (const auto done = logs(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
