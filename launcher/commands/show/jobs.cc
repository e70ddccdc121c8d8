#include "launcher/commands/show/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/operate/through_agent.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/show/standing_run.h"
#include "launcher/view/summary_view.h"
#include "launcher/view/text_table.h"

namespace antdt::cli {

namespace {

struct Row {
  KnownRun run;
  std::string state;
  std::uint64_t workers = 0;  // workers that run
  std::uint64_t samples_done = 0;
  std::uint64_t samples_total = 0;
  std::string paused;  // why, and what ends it; empty: it is not paused
};

void fill(Row& row, const report::Status& status) {
  row.state = status.state;
  row.samples_done = status.samples_done;
  row.samples_total = status.samples_total;
  if (status.paused) row.paused = launcher::paused_line(status);
  row.workers =
      static_cast<std::uint64_t>(std::ranges::count_if(status.workers, launcher::is_running));
}

void fill_running(Row& row) {
  row.state = "does not answer";
  auto job = reach(row.run.run_dir);
  if (!job) return;
  if (const auto status = status_of(*job)) fill(row, *status);
}

void fill_ended(Row& row) {
  const auto summary = launcher::read_summary(row.run.run_dir);
  if (!summary) {
    row.state = "its summary cannot be read";
    return;
  }
  row.state = summary->state;
  row.samples_done = summary->samples_trained;
  row.samples_total = summary->samples_total;
}

// Its job daemon knows how far it is.
void fill_standing(Row& row) {
  if (row.run.state == RunState::kRunning) {
    auto job = reach_without_files(row.run.run_dir, {ErrorKind::kUnreachable, row.run.trouble});
    const auto status = job ? status_of(*job) : tl::unexpected<Error>(job.error());
    if (status) return fill(row, *status);
  }
  row.state = "its files cannot be seen";
}

Row row_of(const KnownRun& run) {
  Row row;
  row.run = run;
  if (!run.trouble.empty()) {
    fill_standing(row);
    return row;
  }
  if (const std::string host = unseen_host(run.run_dir); !host.empty()) {
    row.state = "ask on " + host;
    return row;
  }
  row.run.state = present_state(run.run_dir);
  if (row.run.state == RunState::kRunning) {
    fill_running(row);
  } else if (row.run.state == RunState::kEnded) {
    fill_ended(row);
  } else {
    row.state = "broken off";
  }
  return row;
}

std::string percent(const Row& row) {
  if (row.samples_total == 0) return "-";
  const double share =
      static_cast<double>(row.samples_done) / static_cast<double>(row.samples_total);
  return fmt::format("{:.0f}%", 100 * std::min(share, 1.0));
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    out.push_back({{"job", row.run.job},
                   {"state", row.state},
                   {"running", row.run.state == RunState::kRunning},
                   {"paused", !row.paused.empty()},
                   {"workers", row.workers},
                   {"samples_done", row.samples_done},
                   {"samples_total", row.samples_total},
                   {"run_dir", row.run.run_dir}});
  }
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

Status print_jobs(const std::vector<KnownRun>& runs, bool json) {
  std::vector<Row> rows;
  for (const KnownRun& run : runs) rows.push_back(row_of(run));
  if (json) {
    print_json(rows);
    return {};
  }
  if (rows.empty()) {
    fmt::print("none of your jobs is running, and there are no runs below ./runs\n");
    return {};
  }
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows) {
    cells.push_back({row.run.job, row.paused.empty() ? row.state : "paused",
                     std::to_string(row.workers), percent(row), row.run.run_dir});
  }
  for (const std::string& line :
       launcher::text_table({"job", "state", "workers#", "done#", "directory"}, cells)) {
    fmt::print("{}\n", line);
  }
  for (const Row& row : rows) {
    if (!row.paused.empty()) fmt::print("{} is {}\n", row.run.job, row.paused);
    if (!row.run.trouble.empty()) fmt::print("{}: {}\n", row.run.job, row.run.trouble);
  }
  return {};
}

void add_jobs(CLI::App& app, int& exit_code) {
  struct Options {
    bool json = false;
    ThroughAgent through;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("jobs", "List the runs that can be found");
  command->add_flag("--json", options->json, "print JSON");
  add_agent_options(*command, options->through,
                    "list the jobs that this agent (default port 7700) knows: those of all users "
                    "for members of antdt-admin, else your own");
  command->callback([options, &exit_code] {
    const Status done = options->through.wanted() ? print_jobs_of(options->through, options->json)
                                                  : print_jobs(known_runs(), options->json);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
