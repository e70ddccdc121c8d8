// antdt run: runs a job from its file to its summary.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "core/os/runtime_dir.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/doctor/quick.h"
#include "launcher/commands/plan/make_plan.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/commands/run/resume.h"
#include "launcher/commands/run/run_prepared.h"
#include "launcher/commands/run/watch_run.h"
#include "launcher/plan/plan_view.h"
#include "launcher/plan/reasons.h"
#include "launcher/slurm/slurm_agents.h"
#include "launcher/start/start.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

namespace {

constexpr int kStoppedBefore = 75;  // as a job that was stopped: it may be started again

struct RunOptions {
  std::string job;
  std::string resume;  // a run to resume; then no job file is given
  bool from_checkpoint = false;
  std::string lost_host;  // see resume.h
  bool grow = false;
  std::vector<std::string> set;
  std::string launcher;  // "slurm", or empty: hosts and agents as [cluster] says
  RunHow how;
  bool dry_run = false;
};

// trainer.sync = "auto": plans, and says what it chose and why. Returns the settings to add and, in
// `options`, what goes into RUN/plan.json. No settings: the job names a way itself.
Result<std::vector<std::string>> planned_settings(transport::Context& context,
                                                  RunOptions& options) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load(options.job, options.set));
  if (config.trainer.sync != launcher::plan::kAutoSync) return std::vector<std::string>{};
  std::FILE* out = talk(options.how.json);
  fmt::print(out, "trainer.sync = \"auto\": trying ways of synchronisation, about half a minute\n");
  const auto say = [out](const std::string& what) {
    fmt::print(out, "  {}\n", what);
    std::fflush(out);
  };
  ANTDT_TRY(const Planned planned, make_plan(context, options.job, options.set, say));
  const launcher::plan::Plan& plan = planned.plan;
  if (!plan.recommended) {
    std::string why;
    for (const std::string& caveat : plan.caveats) why += "\n  " + caveat;
    return fail(ErrorKind::kUsage,
                "trainer.sync = \"auto\": no way of synchronisation can be chosen; antdt plan {} "
                "shows why for each. Name one in trainer.sync{}",
                options.job, why);
  }
  const launcher::plan::Prediction& chosen = plan.predictions[*plan.recommended];
  fmt::print(out, "chosen in {:.1f} s: {}\n", planned.seconds, launcher::plan::name_of(chosen));
  for (const std::string& reason : plan.reasons) say(reason);
  auto json = launcher::plan::plan_json(planned.measured, plan);
  json["seconds"] = planned.seconds;
  options.how.plan = json.dump(2) + "\n";
  return launcher::plan::settings_of(chosen);
}

void print_dry_run(const RunOptions& options, const Prepared& prepared) {
  if (options.how.json) {
    nlohmann::ordered_json placement = nlohmann::ordered_json::array();
    const auto add = [&](const char* role, const std::vector<std::size_t>& places) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        placement.push_back(
            {{role, fmt::format("{}{}", role[0], i)}, {"host", prepared.hosts[places[i]].name}});
      }
    };
    add("worker", prepared.places.workers);
    add("server", prepared.places.servers);
    const nlohmann::ordered_json out = {
        {"config", nlohmann::ordered_json::parse(launcher::to_json(prepared.config))},
        {"placement", placement}};
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("{}\n# placement\n", launcher::to_toml(prepared.config));
  for (const std::string& line : placement_lines(prepared)) fmt::print("# {}\n", line);
}

// Prints how many malformed rows were quarantined.
void print_quarantined(bool json, const std::string& data_json) {
  const auto data = nlohmann::json::parse(data_json);
  if (data["quarantined"] == 0) return;
  const auto rows = data["quarantined"].get<std::uint64_t>();
  fmt::print(talk(json), "{} malformed row{} put aside, and no record{} of this job:\n", rows,
             rows == 1 ? " is" : "s are", rows == 1 ? "" : "s");
  for (const auto& file : data["quarantine_files"]) {
    if (file != "") fmt::print(talk(json), "  {}\n", file.get<std::string>());
  }
}

Result<int> run(RunOptions options) {
  if (options.job.empty()) {
    return fail(ErrorKind::kUsage, "which job? antdt run job.toml, or antdt run --resume RUN");
  }
  transport::Context context;
  if (!options.dry_run) {
    ANTDT_TRY(const auto settings, planned_settings(context, options));
    options.set.insert(options.set.end(), settings.begin(), settings.end());
  }
  ANTDT_TRY(const Prepared prepared, prepare(context, options.job, options.set, options.how.run));
  if (options.dry_run) {
    print_dry_run(options, prepared);
    return 0;
  }
  warn_of_trouble(context, prepared.config, options.how.run);
  return run_prepared(context, prepared, options.how);
}

Result<int> run_or_resume(const RunOptions& options) {
  if (options.resume.empty()) return run(options);
  return resume({options.resume, options.from_checkpoint, options.grow, options.set,
                 options.how.json, options.how.detach, options.how.lent, options.lost_host});
}

// Agents on the nodes of this allocation, for as long as the job runs.
Result<int> run_under_slurm(RunOptions options) {
  launcher::hold_signals();
  ANTDT_TRY(const launcher::Programs programs, launcher::find_programs());
  transport::Context context;
  launcher::SlurmAgents agents;
  ANTDT_TRY(const bool begun, agents.start(context, programs.agent));
  if (!begun) {
    fmt::print(stderr,
               "antdt: stopped by a signal before the agents had begun: nothing was started\n");
    return kStoppedBefore;
  }
  for (std::string& setting : agents.settings()) options.set.push_back(std::move(setting));
  options.how.lent = agents.lent();
  return run_or_resume(options);
}

}  // namespace

Result<int> run_prepared(transport::Context& context, const Prepared& prepared, const RunHow& how) {
  if (prepared.config.trainer.sync == launcher::plan::kAutoSync) {
    return fail(ErrorKind::kUsage,
                "trainer.sync = \"auto\" is for antdt run: name a way of synchronisation");
  }
  ANTDT_TRY(const launcher::Programs programs, launcher::find_programs());
  ANTDT_TRY(const std::string sockets, runtime_directory());
  ANTDT_TRY(const std::string data_json, index_data(prepared.config));
  print_quarantined(how.json, data_json);
  ANTDT_TRY(launcher::RunDirectory directory,
            launcher::create_run_directory(prepared.config, prepared.job_toml, how.run));
  ANTDT_RETURN_IF_ERROR(write_file_atomic(directory.path + "/data.json", data_json, 0600));
  if (!how.plan.empty()) {
    ANTDT_RETURN_IF_ERROR(write_file_atomic(directory.path + "/plan.json", how.plan, 0600));
  }

  launcher::hold_signals();
  const std::string& job = prepared.config.job.id;
  const launcher::DetachedPlace place = place_of(how.detach, job);
  ANTDT_TRY(
      const launcher::RunControl control,
      launcher::start_job(context, {programs, sockets, directory.path, directory.state_dir, job,
                                    place.launcher, prepared.config.failure.orphan_timeout}));
  print_started({job, directory.path, how.json, how.detach, place});
  if (how.detach) return 0;
  const std::size_t shown = how.shows_output ? prepared.places.workers.size() : 0;
  return watch_run(context, {directory.path, control, prepared.config.failure.stop_grace, how.json,
                             true, how.lent, shown});
}

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a job and watch it");
  CLI::Option* job = command->add_option("JOB", options->job, "the job's file, job.toml");
  CLI::Option* goes_on = command
                             ->add_option("--resume", options->resume,
                                          "go on with an ended or broken-off run from its last "
                                          "checkpoint; JOB is not given then")
                             ->type_name("RUN")
                             ->excludes(job);
  command
      ->add_flag("--from-checkpoint", options->from_checkpoint,
                 "with --resume: put the journal aside, go on with what the newest "
                 "complete checkpoint knows")
      ->needs(goes_on);
  command
      ->add_option("--lost-host", options->lost_host,
                   "with --resume: HOST, the other machine on which the run was started, is lost, "
                   "or has nothing of the run left")
      ->type_name("HOST")
      ->needs(goes_on);
  command
      ->add_flag("--grow", options->grow,
                 "with --resume: records were added after those of the training data; the next "
                 "epoch sees them")
      ->needs(goes_on);
  command
      ->add_option(
          "--set", options->set,
          "KEY=VALUE: change what JOB says, or with --resume what may change in a run; may "
          "be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--run-dir", options->how.run.run_dir, "directory of this run")
      ->type_name("DIR")
      ->excludes(goes_on);
  command->add_option("--state-dir", options->how.run.state_dir, "local directory for the journal")
      ->type_name("DIR")
      ->excludes(goes_on);
  command->add_flag("--json", options->how.json, "print only JSON to standard output");
  CLI::Option* detach =
      command->add_flag("--detach", options->how.detach, "return when the job runs");
  command
      ->add_option("--launcher", options->launcher,
                   "slurm: start agents on the nodes of this allocation of Slurm, and end them "
                   "with the job")
      ->type_name("NAME")
      ->check(CLI::IsMember({"slurm"}))
      ->excludes(detach);
  command
      ->add_flag("--dry-run", options->dry_run,
                 "check everything, print configuration and placement, start nothing")
      ->excludes(goes_on);
  command->callback([options, &exit_code] {
    const auto result =
        options->launcher.empty() ? run_or_resume(*options) : run_under_slurm(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
