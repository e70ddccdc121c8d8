// antdt status: shows a run as it is now, or as it ended.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/jobs.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/show/standing_run.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {

namespace {

struct StatusOptions {
  std::string job;
  bool json = false;
  bool watch = false;
  ThroughAgent through;
};

constexpr Duration kWatchInterval = std::chrono::seconds(1);

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

Status print_ended(const std::string& run_dir, bool json) {
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  if (json) {
    ANTDT_TRY(const std::string text, read_file(run_dir + "/summary.json"));
    fmt::print("{}", text);
    return {};
  }
  print_lines(launcher::summary_lines(summary));
  print_lines(launcher::closing_lines(summary, run_dir));
  return {};
}

// With --watch on a terminal, the screen is drawn again each time.
void begin_page(const StatusOptions& options) {
  if (options.watch && !options.json && ::isatty(STDOUT_FILENO) == 1) fmt::print("\x1b[H\x1b[2J");
}

Status print_running(RunningJob& job, const StatusOptions& options) {
  const auto answer = job.link.status(0, std::chrono::seconds(3));
  if (!answer && job.through.wanted()) return tl::unexpected<Error>(answer.error());
  if (!answer) {
    return fail(ErrorKind::kUnreachable,
                "the job daemon of {} does not answer ({}); see {}/agent.log and {}/logs",
                job.run_dir, answer.error().message, job.run_dir, job.run_dir);
  }
  std::vector<launcher::EventView> events;
  for (const std::string& text : answer->events) {
    if (auto event = launcher::parse_event(text)) events.push_back(std::move(*event));
  }
  if (options.json) {
    fmt::print("{}\n", launcher::with_last_events(answer->status_json, events));
    return {};
  }
  ANTDT_TRY(const report::Status status, launcher::parse_status(answer->status_json));
  begin_page(options);
  print_lines(launcher::status_table(status, events));
  if (options.watch) return {};
  for (const launcher::EventView& event : events) {
    if (launcher::is_notable(event)) fmt::print("{}\n", launcher::event_line(event));
  }
  return {};
}

// Once, or with --watch until the job has ended.
Status print_again(RunningJob& job, const StatusOptions& options) {
  while (true) {
    const Status shown = print_running(job, options);
    // Of a job about which nobody says anything, --watch goes on.
    const RunState state =
        shown && !options.watch ? RunState::kRunning : state_of(job).value_or(RunState::kRunning);
    const bool goes_on = options.watch && state != RunState::kBrokenOff;
    if (state == RunState::kEnded && (options.watch || !shown)) {
      return print_ended(job.run_dir, options.json);
    }
    if (!goes_on) return shown;
    if (!shown) fmt::print(stderr, "{}\n", shown.error().message);
    std::fflush(stdout);
    std::this_thread::sleep_for(kWatchInterval);
  }
}

// The job may end while it is asked, and its daemon may be started again.
Status print_status(const StatusOptions& options) {
  if (options.through.wanted()) {
    ANTDT_TRY(RunningJob job, reach(options.job, options.through));
    return print_again(job, options);
  }
  std::string run_dir;
  if (options.job.empty()) {
    const std::vector<KnownRun> runs = known_runs();
    const KnownRun* const newest = newest_running(runs);
    if (newest == nullptr) return print_jobs(runs, options.json);
    run_dir = newest->run_dir;
  } else {
    ANTDT_TRY(run_dir, locate_run(options.job));
  }
  const auto found = state_in_time(run_dir);
  if (!found) {  // the error of the job daemon says more
    ANTDT_TRY(RunningJob standing, reach_without_files(run_dir, found.error()));
    return print_running(standing, options);
  }
  RunState state = *found;
  if (state == RunState::kBrokenOff) state = state_elsewhere(run_dir);
  if (state == RunState::kEnded) return print_ended(run_dir, options.json);
  ANTDT_TRY(RunningJob job, reach(run_dir));
  return print_again(job, options);
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "Show how a run is, or how it ended");
  command->add_option("RUN", options->job,
                      std::string(kJobHelp) + " (default: the newest running)");
  command->add_flag("--json", options->json, "print JSON");
  command->add_flag("--watch", options->watch, "again each second, until the run ends");
  add_agent_options(*command, options->through,
                    help_with_job("ask for that of another user's job"));
  command->callback([options, &exit_code] {
    if (const auto done = print_status(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
