// antdt explain: why a job is in its state, in sentences.
#include "launcher/explain.h"

#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "cmd/antdt/commands.h"
#include "cmd/antdt/running_job.h"
#include "cmd/antdt/runs.h"
#include "core/fs.h"

namespace antdt::cli {

namespace {

// A line that was cut short (the machine went down) is left out.
std::vector<launcher::EventView> all_events(const std::string& run_dir) {
  std::vector<launcher::EventView> events;
  std::istringstream lines(read_file(run_dir + "/events.jsonl").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (auto event = launcher::parse_event(line)) events.push_back(std::move(*event));
  }
  return events;
}

Status explain(const std::string& job, const std::string& worker, bool json) {
  ANTDT_TRY(const std::string run_dir, find_job(job));
  launcher::ExplainInput input;
  input.run_dir = run_dir;
  input.worker = worker;
  const RunState state = state_of(run_dir);
  if (state == RunState::kRunning) {
    ANTDT_TRY(RunningJob running, reach(run_dir));
    ANTDT_TRY(launcher::JobStatus answer, running.link.status(0, std::chrono::seconds(3)));
    input.status_json = std::move(answer.status_json);
  } else if (state == RunState::kEnded) {
    ANTDT_TRY(input.summary_json, read_file(run_dir + "/summary.json"));
  }
  input.events = all_events(run_dir);
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
  command->add_option("JOB", options->job, kJobHelp)->required();
  command->add_option("WORKER", options->worker, "a worker such as w3 (default: the run)");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto done = explain(options->job, options->worker, options->json);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
