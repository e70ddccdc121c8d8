// antdt run: a job from its file to its summary.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cmd/antdt/commands.h"
#include "cmd/antdt/prepare.h"
#include "core/fs.h"
#include "core/runtime_dir.h"
#include "launcher/live_view.h"
#include "launcher/start.h"
#include "launcher/summary_view.h"

namespace antdt::cli {

namespace {

struct Options {
  std::string job;
  std::vector<std::string> set;
  launcher::RunOptions run;
  bool json = false;
  bool detach = false;
  bool dry_run = false;
};

// Progress and remarks; standard output is for JSON where that is asked for.
std::FILE* talk(const Options& options) { return options.json ? stderr : stdout; }

void print_dry_run(const Options& options, const Prepared& prepared) {
  if (options.json) {
    nlohmann::ordered_json placement = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < prepared.places.size(); ++i) {
      placement.push_back(
          {{"worker", fmt::format("w{}", i)}, {"host", prepared.hosts[prepared.places[i]].name}});
    }
    const nlohmann::ordered_json out = {
        {"config", nlohmann::ordered_json::parse(launcher::to_json(prepared.config))},
        {"placement", placement}};
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("{}\n# placement\n", launcher::to_toml(prepared.config));
  for (const std::string& line : placement_lines(prepared)) fmt::print("# {}\n", line);
}

void print_started(const Options& options, const Prepared& prepared, const std::string& run_dir) {
  if (!options.detach) {
    return fmt::print(talk(options), "{} in {}\n", prepared.config.job.id, run_dir);
  }
  if (options.json) {
    const nlohmann::ordered_json out = {{"job", prepared.config.job.id}, {"run_dir", run_dir}};
    return fmt::print("{}\n", out.dump());
  }
  fmt::print("{} runs in {}\n  look:  antdt status {}\n  end:   antdt stop {}\n",
             prepared.config.job.id, run_dir, run_dir, run_dir);
}

// What is said of malformed rows that were put aside.
void print_quarantined(const Options& options, const std::string& data_json) {
  const auto data = nlohmann::json::parse(data_json);
  if (data["quarantined"] == 0) return;
  fmt::print(talk(options), "{} malformed rows were put aside:\n",
             data["quarantined"].get<std::uint64_t>());
  for (const auto& file : data["quarantine_files"]) {
    if (file != "") fmt::print(talk(options), "  {}\n", file.get<std::string>());
  }
}

int print_summary(const Options& options, const std::string& run_dir) {
  const auto summary = launcher::read_summary(run_dir);
  if (!summary) return report(summary.error());
  if (options.json) {
    fmt::print("{}", summary->json);
  } else {
    for (const std::string& line : summary->lines) fmt::print("{}\n", line);
  }
  std::fflush(stdout);
  for (const std::string& line : launcher::closing_lines(*summary, run_dir)) {
    fmt::print(stderr, "{}\n", line);
  }
  return summary->exit_code;
}

Result<int> run(const Options& options) {
  transport::Context context;
  ANTDT_TRY(const launcher::Programs programs, launcher::find_programs());
  ANTDT_TRY(const std::string sockets, runtime_directory());
  ANTDT_TRY(const Prepared prepared, prepare(context, options.job, options.set, options.run));
  if (options.dry_run) {
    print_dry_run(options, prepared);
    return 0;
  }
  ANTDT_TRY(const std::string data_json, index_data(prepared.config));
  print_quarantined(options, data_json);
  ANTDT_TRY(launcher::RunDirectory directory,
            launcher::create_run_directory(prepared.config, prepared.job_toml, options.run));
  ANTDT_RETURN_IF_ERROR(write_file_atomic(directory.path + "/data.json", data_json, 0600));

  launcher::hold_signals();
  ANTDT_TRY(const launcher::RunControl control,
            launcher::start_job(context, {programs, sockets, directory.path, directory.state_dir,
                                          prepared.config.job.id}));
  print_started(options, prepared, directory.path);
  if (options.detach) return 0;
  ANTDT_TRY(const launcher::WatchEnd end,
            launcher::watch(context, {directory.path, control, prepared.config.failure.stop_grace,
                                      talk(options), ::isatty(::fileno(talk(options))) == 1}));
  if (end == launcher::WatchEnd::kDetached) return 128 + SIGHUP;
  launcher::finish_agent(control);
  return print_summary(options, directory.path);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Run a job and watch it");
  command->add_option("JOB", options->job, "the job's file, job.toml")->required();
  command->add_option("--set", options->set, "KEY=VALUE: change what JOB says, as often as wanted")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--run-dir", options->run.run_dir, "directory of this run")->type_name("DIR");
  command->add_option("--state-dir", options->run.state_dir, "local directory for the journal")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "print only JSON to standard output");
  command->add_flag("--detach", options->detach, "return when the job runs");
  command->add_flag("--dry-run", options->dry_run,
                    "check everything, print configuration and placement, start nothing");
  command->callback([options, &exit_code] {
    const auto result = run(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
