// antdt explain: says in sentences why a job is in its state.
#include "launcher/view/explain.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <sstream>

#include "core/os/fs.h"
#include "core/os/rotating_file.h"
#include "jobd/disk/checkpoint_store.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/show/standing_run.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {

namespace {

// A line that was cut short (when the machine went down) is ignored.
std::vector<launcher::EventView> events_in(const std::string& text) {
  std::vector<launcher::EventView> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (auto event = launcher::parse_event(line)) events.push_back(std::move(*event));
  }
  return events;
}

// The content of the run's own files.
struct RunFiles {
  std::string run_dir;
  Result<RunState> state = RunState::kBrokenOff;  // the error: none of them can be seen
  std::string summary;
  std::string events;
  std::optional<bool> has_checkpoint;  // of a run that broke off
  std::string given_up;                // likewise
};
// Empty if nobody knows. Files are not looked into, which would take long: resuming does that.
std::optional<bool> has_checkpoint(const std::string& run_dir) {
  const auto complete = jobd::CheckpointStore(run_dir, 1).list();
  if (!complete) return std::nullopt;
  return !complete->empty();
}

Result<RunFiles> read_files(const std::string& run_dir) {
  RunFiles files;
  files.run_dir = run_dir;
  files.state = seen_state(files.run_dir);
  if (!files.state) return files;
  if (*files.state == RunState::kEnded) {
    ANTDT_TRY(files.summary, read_file(files.run_dir + "/summary.json"));
  }
  if (*files.state == RunState::kBrokenOff) {
    files.has_checkpoint = has_checkpoint(files.run_dir);
    files.given_up = launcher::given_up(files.run_dir);
  }
  files.events = read_rotated(files.run_dir + "/events.jsonl");
  return files;
}

Result<RunFiles> files_in_time(const std::string& run_dir) {
  const auto files = within(kDiskPatience, [run_dir] { return read_files(run_dir); });
  if (files) return *files;
  RunFiles unseen;
  unseen.run_dir = run_dir;
  unseen.state = fail(ErrorKind::kUnreachable, "{}", does_not_answer(run_dir));
  return unseen;
}

// `events`: those in the files, if they can be read; otherwise those that the daemon has in memory.
Status ask_daemon(RunningJob& running, launcher::ExplainInput& input) {
  ANTDT_TRY(launcher::JobStatus answer, running.link.status(0, std::chrono::seconds(3)));
  input.status_json = std::move(answer.status_json);
  if (!input.events.empty()) return {};
  for (const std::string& line : answer.events) {
    if (auto event = launcher::parse_event(line)) input.events.push_back(std::move(*event));
  }
  return {};
}

// The daemon on another host knows events that the files here do not have.
Status ask_elsewhere(launcher::ExplainInput& input) {
  switch (state_elsewhere(input.run_dir)) {
    case RunState::kBrokenOff:
      return {};
    case RunState::kEnded: {
      ANTDT_TRY(input.summary_json, read_file(input.run_dir + "/summary.json"));
      return {};
    }
    case RunState::kRunning: {
      ANTDT_TRY(RunningJob running, reach_elsewhere(input.run_dir));
      input.events.clear();
      return ask_daemon(running, input);
    }
  }
  return {};
}

Status explain(const std::string& job, const std::string& worker, bool json) {
  launcher::ExplainInput input;
  input.worker = worker;
  ANTDT_TRY(const std::string run_dir, locate_run(job));
  ANTDT_TRY(const RunFiles files, files_in_time(run_dir));
  if (!files.state) {
    ANTDT_TRY(RunningJob running, reach_without_files(run_dir, files.state.error()));
    input.run_dir = running.run_dir;
    ANTDT_RETURN_IF_ERROR(ask_daemon(running, input));
  } else {
    input.run_dir = files.run_dir;
    input.summary_json = files.summary;
    input.events = events_in(files.events);
    input.has_checkpoint = files.has_checkpoint;
    input.given_up = files.given_up;
    if (*files.state == RunState::kRunning) {
      ANTDT_TRY(RunningJob running, reach(input.run_dir));
      ANTDT_RETURN_IF_ERROR(ask_daemon(running, input));
    }
    if (*files.state == RunState::kBrokenOff) {
      ANTDT_RETURN_IF_ERROR(check_seen(input.run_dir));
      ANTDT_RETURN_IF_ERROR(ask_elsewhere(input));
    }
  }
  ANTDT_TRY(const launcher::Explanation explanation, launcher::explain(input));
  if (json) {
    fmt::print("{}\n", launcher::to_json(explanation));
    return {};
  }
  for (const std::string& line : launcher::to_lines(explanation)) fmt::print("{}\n", line);
  return {};
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  struct Options {
    std::string job;
    std::string worker;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Say why a run, or a worker, is in its state");
  command->add_option("RUN", options->job, kJobHelp)->required();
  command->add_option("WORKER", options->worker, "a worker such as w3 (default: the run)");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto done = explain(options->job, options->worker, options->json);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
