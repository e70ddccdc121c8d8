// antdt replay: the bill of a recorded run, and what other solutions would have made of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "core/report/json.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/simulate/recorded_run.h"
#include "launcher/commands/simulate/what_if.h"
#include "launcher/view/text_table.h"
#include "report/run_view.h"

namespace antdt::cli {
namespace {

struct ReplayOptions {
  std::string run;
  std::vector<std::string> solutions;
  bool json = false;
};

void tell_of_devices(const std::vector<launcher::DeviceEntry>& devices) {
  std::map<std::string, std::vector<std::string>> workers_of;
  for (const launcher::DeviceEntry& device : devices) {
    workers_of[device.name].push_back(device.workers.front());
  }
  for (const auto& [name, workers] : workers_of) {
    if (!name.empty()) fmt::print("{} said: {}\n", fmt::join(workers, ", "), name);
  }
}

// How the run itself went, if it has ended.
void tell_of_run(const RecordedRun& run) {
  fmt::print("recorded: {:.1f} s of training under {}", run.speeds.seconds(),
             run.job.config.control.solution);
  if (run.summary) {
    fmt::print(", {:.1f} s in the summary, {:.0f} samples/s", run.summary->training_seconds,
               run.summary->samples_per_second);
  }
  fmt::print("\n");
}

void print(const page::TableView& view) {
  for (const std::string& line : view.above) fmt::print("{}\n", line);
  for (const std::string& line : launcher::text_table(view.header, view.rows)) {
    fmt::print("{}\n", line);
  }
  for (const std::string& line : view.below) fmt::print("{}\n", line);
}

void print_bill(const std::optional<report::Bill>& bill) {
  if (!bill) return fmt::print("its bill is made when it has ended\n");
  report::BillTable table = report::table_of(*bill);
  print({std::move(table.sums), std::move(table.header), std::move(table.rows), {}});
}

// The bill, and every alternative.
Result<int> replay_all(const RecordedRun& run, bool json) {
  ANTDT_TRY(const auto bill, read_bill(run.run_dir));
  const WhatIf what_if = play_alternatives(run);
  if (json) {
    report::Json object = {{"job", job_id(run.run_dir)}, {"bill", nullptr}};
    if (bill) object["bill"] = report::json_of(*bill);
    object["recorded_seconds"] = run.speeds.seconds();
    object["what_if"] =
        report::Json::parse(fleet::to_json(what_if.alternatives, what_if.recommended));
    fmt::print("{}\n", report::to_text(object, 2));
    return 0;
  }
  tell_of_run(run);
  tell_of_devices(run.devices);
  print_bill(bill);
  print(view_of(what_if));
  return 0;
}

Result<int> replay(const ReplayOptions& options) {
  ANTDT_TRY(const RecordedRun run, load_recorded(options.run));
  if (options.solutions.empty()) return replay_all(run, options.json);
  const auto recorded = static_cast<std::uint32_t>(run.workers.size());
  const FleetJob job = with_workers(run, repeated(recorded, recorded));
  ANTDT_TRY(const auto lines, play_each(job, run.speeds, options.solutions));
  if (!options.json) {
    tell_of_run(run);
    tell_of_devices(run.devices);
  }
  print_comparison(lines, options.json);
  return 0;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Show where a run's time went, and play it again with other solutions");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command
      ->add_option("--solution", options->solutions,
                   "play only this solution; may be repeated (default: every one that the job "
                   "could have used, and a host fewer)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = replay(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
