// antdt logs: what the workers of a run have written.
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <thread>

#include "cmd/antdt/commands.h"
#include "cmd/antdt/running_job.h"
#include "cmd/antdt/runs.h"
#include "core/fs.h"
#include "launcher/worker_logs.h"

namespace antdt::cli {

namespace {

using launcher::WorkerLog;

struct LogsOptions {
  std::string job;
  std::string worker;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> attempt;
  bool out = false;
  bool err = false;
  bool follow = false;
  std::optional<std::size_t> lines;
};

constexpr Duration kPoll = std::chrono::milliseconds(200);
constexpr std::size_t kFollowedLines = 10;  // of before, where nobody says how many

// The workers as the job daemon knows them, or as the summary has them.
Result<launcher::StatusView> workers_of(const std::string& run_dir) {
  if (state_of(run_dir) == RunState::kRunning) {
    ANTDT_TRY(RunningJob job, reach(run_dir));
    return status_of(job);
  }
  ANTDT_TRY(const std::string text, read_file(run_dir + "/summary.json"));
  return launcher::parse_status(text);
}

Result<launcher::LogFilter> filter_of(const LogsOptions& options, const std::string& run_dir) {
  launcher::LogFilter filter;
  if (options.out != options.err) filter = {{}, {}, options.out, options.err};
  if (options.attempt) filter.attempt = Attempt{*options.attempt};
  std::string id = options.worker;
  if (options.rank) {
    ANTDT_TRY(const launcher::StatusView status, workers_of(run_dir));
    const auto found =
        std::ranges::find(status.workers, options.rank, &launcher::WorkerStatus::rank);
    if (found == status.workers.end()) {
      return fail(ErrorKind::kUsage, "no worker of {} has rank {} now: antdt status lists them",
                  run_dir, *options.rank);
    }
    id = found->id;
  }
  if (id.empty()) return filter;
  filter.worker = parse_worker_id(id);
  if (!filter.worker) return fail(ErrorKind::kUsage, "'{}' is no worker id, such as w3", id);
  return filter;
}

// Workers of other hosts write there, where the run directory is not shared.
std::vector<std::string> elsewhere(const launcher::LogFilter& filter, const std::string& run_dir,
                                   const std::vector<WorkerLog>& here) {
  std::vector<std::string> lines;
  const auto status = workers_of(run_dir);
  if (!status) return lines;
  for (const launcher::WorkerStatus& w : status->workers) {
    const auto id = parse_worker_id(w.id);
    const bool wanted = id && (!filter.worker || *filter.worker == *id);
    if (!wanted || w.pid == 0 || std::ranges::find(here, *id, &WorkerLog::worker) != here.end()) {
      continue;
    }
    lines.push_back(fmt::format("the output of {} is on {}: {}/logs/{}.{}.out and .err", w.id,
                                w.host, run_dir, w.id, w.attempt));
  }
  return lines;
}

class Printer {
 public:
  Printer(std::string run_dir, launcher::LogFilter filter, std::optional<std::size_t> lines)
      : run_dir_(std::move(run_dir)), filter_(std::move(filter)), lines_(lines) {}

  // Logs that were not there at the last call begin at their beginning.
  void find_new() {
    const auto found = launcher::select(launcher::find_logs(run_dir_), filter_);
    for (const WorkerLog& log : found) {
      if (!known_.insert(log.path).second) continue;
      open_.push_back({log, launcher::LogReader(log.path, first_ ? lines_ : std::nullopt)});
      workers_.insert(log.worker);
    }
    first_ = false;
  }

  void print(bool last) {
    for (Open& open : open_) {
      const std::string prefix =
          workers_.size() > 1 ? fmt::format("{}: ", open.log.worker) : std::string();
      for (const std::string& line : open.reader.read(last)) fmt::print("{}{}\n", prefix, line);
    }
    std::fflush(stdout);
  }

 private:
  struct Open {
    WorkerLog log;
    launcher::LogReader reader;
  };
  std::string run_dir_;
  launcher::LogFilter filter_;
  std::optional<std::size_t> lines_;
  bool first_ = true;
  std::set<std::string> known_;
  std::set<WorkerId> workers_;
  std::list<Open> open_;
};

Status check_there(const launcher::LogFilter& filter, const std::string& run_dir, bool follow) {
  const auto all = launcher::find_logs(run_dir);
  const auto other = elsewhere(filter, run_dir, all);
  for (const std::string& line : other) fmt::print(stderr, "{}\n", line);
  if (follow || !other.empty() || !launcher::select(all, filter).empty()) return {};
  std::set<std::string> names;
  for (const WorkerLog& log : all) names.insert(fmt::format("{}.{}", log.worker, log.attempt));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return fail(ErrorKind::kUsage, "{}/logs has no such output; there is that of {} (WORKER.ATTEMPT)",
              run_dir, text.empty() ? "nobody" : text);
}

Status logs(const LogsOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.job));
  ANTDT_TRY(const launcher::LogFilter filter, filter_of(options, run_dir));
  ANTDT_RETURN_IF_ERROR(check_there(filter, run_dir, options.follow));
  const auto lines = options.follow ? options.lines.value_or(kFollowedLines) : options.lines;
  Printer printer(run_dir, filter, lines);
  while (options.follow && state_of(run_dir) == RunState::kRunning) {
    printer.find_new();
    printer.print(false);
    std::this_thread::sleep_for(kPoll);
  }
  printer.find_new();
  printer.print(true);
  return {};
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
