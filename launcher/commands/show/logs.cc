// antdt logs: shows what the workers of a run have written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/show/run_output.h"
#include "launcher/commands/show/runs.h"

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

// Refuses what no process of the run can have written.
Status check_there(const launcher::LogFilter& filter, const std::string& run_dir,
                   const RunLogs& logs, const std::vector<WorkerLog>& all) {
  std::set<WorkerId> workers;
  std::set<std::string> attempts;
  for (const WorkerLog& log : all) {
    workers.insert(log.worker);
    attempts.insert(fmt::format("{}.{}", log.worker, log.attempt));
  }
  for (const LoggingProcess& process : logs.processes()) {
    workers.insert(process.worker);
    if (process.started) attempts.insert(fmt::format("{}.{}", process.worker, process.attempt));
  }
  if (filter.worker && !workers.contains(*filter.worker)) {
    return fail(ErrorKind::kUsage, "{} has no worker or server {}; it has {}", run_dir,
                *filter.worker,
                workers.empty() ? "none" : fmt::format("{}", fmt::join(workers, ", ")));
  }
  const bool was_there = std::ranges::any_of(
      logs.processes(), [&](const LoggingProcess& p) { return is_asked_for(p, filter); });
  if (!filter.attempt || was_there || !launcher::select(all, filter).empty()) return {};
  return fail(ErrorKind::kUsage, "{}/logs has no such output; there is that of {} (WORKER.ATTEMPT)",
              run_dir, attempts.empty() ? "nobody" : fmt::format("{}", fmt::join(attempts, ", ")));
}

// Says which of those whose output was asked for wrote nothing, so that nobody looks for it.
void tell_silent(const std::vector<LoggingProcess>& silent) {
  std::vector<std::string> names;
  for (const LoggingProcess& p : silent) names.push_back(fmt::format("{}.{}", p.worker, p.attempt));
  if (names.empty()) return;
  fmt::print(stderr, "nothing was written by {} (WORKER.ATTEMPT)\n", fmt::join(names, ", "));
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
  std::fflush(stdout);
}

void follow(const std::string& run_dir, RunOutput& output) {
  // While its files answer with an error, nobody knows that it is over.
  while (seen_state(run_dir).value_or(RunState::kRunning) == RunState::kRunning) {
    print(output.read(false));
    std::this_thread::sleep_for(kPoll);
  }
}

// Shows what can be read, even if some logs cannot.
Status logs(const LogsOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.job));
  ANTDT_TRY(const launcher::LogFilter filter, filter_of(options, run_dir));
  ANTDT_TRY(RunLogs logs, RunLogs::open(run_dir, filter, options.follow));
  const auto all = logs.find();
  const auto missing = logs.missing(all);
  for (const std::string& line : missing) fmt::print(stderr, "{}\n", line);
  if (!options.follow && missing.empty()) {
    ANTDT_RETURN_IF_ERROR(check_there(filter, run_dir, logs, all));
    tell_silent(logs.without_files(all));
  }
  RunOutput output(logs, filter,
                   options.follow ? options.lines.value_or(kFollowedLines) : options.lines);
  if (options.follow) {
    ANTDT_RETURN_IF_ERROR(check_seen(run_dir));  // nobody here knows when it is over
    follow(run_dir, output);
  }
  print(output.read(true));
  if (options.follow || missing.empty()) return {};
  return fail(ErrorKind::kUnreachable, "not all that was asked for could be read");
}

}  // namespace

void add_logs(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", "Show what the workers of a run have written");
  command->add_option("RUN", options->job, kJobHelp)->required();
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
