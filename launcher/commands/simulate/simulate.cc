// antdt simulate: simulates a job in virtual time, with any number of workers.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/drill/drill_json.h"
#include "core/schema/units.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/simulate/fleet_job.h"
#include "launcher/commands/simulate/measure.h"
#include "launcher/commands/simulate/recorded_run.h"
#include "sim/fleet/drill_speeds.h"
#include "sim/fleet/some_workers.h"

namespace antdt::cli {
namespace {

struct SimulateOptions {
  std::string job;   // empty: `from` is set
  std::string from;  // a run
  std::vector<std::string> set;
  std::vector<std::string> solutions;
  std::uint32_t workers = 0;   // 0: the number in the job file
  std::uint64_t seed = 0;      // 0: the job's seed
  std::string at_most;         // limit of virtual time; empty: until the job's end
  std::string measure = "2m";  // limit of the time for which a job is measured
  bool json = false;
};

// The devices and the data are in the job file, so nothing has to be measured.
bool is_emulated(const launcher::JobConfig& config) {
  return config.trainer.model == "emulated" && config.data.format == "index";
}

// Those of the command; else the job's own.
std::vector<std::string> solutions_of(const SimulateOptions& options,
                                      const launcher::JobConfig& config) {
  if (!options.solutions.empty()) return options.solutions;
  return {config.control.solution};
}

Result<std::chrono::microseconds> time_of(const char* option, const std::string& text) {
  auto time = schema::parse_duration(text);
  if (time) return time;
  return fail(time.error().kind, "{} {}: {}", option, text, time.error().message);
}

Result<std::vector<fleet::Comparison>> play_solutions(FleetJob job, const fleet::Speeds& speeds,
                                                      const SimulateOptions& options) {
  if (options.seed != 0) job.config.job.seed = options.seed;
  if (!options.at_most.empty()) {
    ANTDT_TRY(job.limit, time_of("--at-most", options.at_most));
  }
  return play_each(job, speeds, solutions_of(options, job.config));
}

// At the speeds of the job file.
Result<std::vector<fleet::Comparison>> play_emulated(const SimulateOptions& options,
                                                     launcher::JobConfig config) {
  if (options.seed != 0) config.job.seed = options.seed;
  const std::string json = launcher::to_json(config);
  ANTDT_TRY(auto rules, drill::parse_rules(json));
  ANTDT_TRY(const auto traces, drill::read_traces(rules));
  ANTDT_TRY(auto emulation, drill::parse_emulation(json));
  FleetJob job;
  job.train_records = config.data.records;
  job.hosts = config.cluster.hosts;
  if (job.hosts.empty()) job.hosts.emplace_back("simulated");
  job.config = std::move(config);
  const std::uint32_t model = std::max<std::uint32_t>(job.config.roles.worker.count, 1);
  const std::uint32_t workers = options.workers == 0 ? model : options.workers;
  if (workers != model) ANTDT_RETURN_IF_ERROR(grow(job, workers));
  std::vector<std::string> host_of;
  for (std::size_t i = 0; i < workers; ++i) {
    host_of.push_back(job.hosts[i * job.hosts.size() / workers]);
  }
  ANTDT_TRY(const auto speeds, fleet::DrillSpeeds::make(std::move(emulation), rules, traces, model,
                                                        host_of, job.config.job.seed));
  return play_solutions(std::move(job), speeds, options);
}

// At the speeds that a run had. The settings may want more workers than it had.
Result<std::vector<fleet::Comparison>> play_recorded(const SimulateOptions& options,
                                                     const RecordedRun& run) {
  const auto recorded = static_cast<std::uint32_t>(run.workers.size());
  const std::uint32_t wanted = run.job.config.roles.worker.count;
  const std::uint32_t workers = options.workers == 0 ? wanted : options.workers;
  const auto which = repeated(workers, recorded);
  FleetJob job = with_workers(run, which);
  if (workers != wanted) {
    job.config.roles.worker.count = wanted;
    ANTDT_RETURN_IF_ERROR(grow(job, workers));
  }
  return play_solutions(std::move(job), fleet::SomeWorkers(run.speeds, which), options);
}

Result<std::vector<fleet::Comparison>> play_what_is_wanted(const SimulateOptions& options) {
  if (options.job.empty() == options.from.empty()) {
    return fail(ErrorKind::kUsage, "name either a job's file or, with --from, a run");
  }
  if (!options.from.empty()) {
    ANTDT_TRY(const RecordedRun run, load_recorded(options.from, options.set));
    return play_recorded(options, run);
  }
  ANTDT_TRY(launcher::JobConfig config, launcher::load(options.job, options.set));
  ANTDT_RETURN_IF_ERROR(can_be_played(config));
  if (is_emulated(config)) return play_emulated(options, std::move(config));
  // Before the minutes of measuring.
  ANTDT_TRY(const auto at_most, time_of("--measure", options.measure));
  if (!options.at_most.empty()) ANTDT_RETURN_IF_ERROR(time_of("--at-most", options.at_most));
  for (const std::string& solution : solutions_of(options, config)) {
    ANTDT_RETURN_IF_ERROR(can_decide(solution));
  }
  ANTDT_TRY(const RecordedRun run, measure({options.job, options.set, at_most}));
  return play_recorded(options, run);
}

Result<int> simulate(const SimulateOptions& options) {
  ANTDT_TRY(const auto lines, play_what_is_wanted(options));
  print_comparison(lines, options.json);
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* command =
      app.add_subcommand("simulate", "Play a job in virtual time, with up to thousands of workers");
  command->add_option("JOB", options->job, "the job's file, job.toml");
  command
      ->add_option("--from", options->from,
                   "instead of JOB: a run, whose job is simulated at the speeds that it measured")
      ->type_name("RUN");
  command
      ->add_option("--workers", options->workers,
                   "how many (default: as the job says); the global batch and the data grow with "
                   "them, and devices repeat")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command
      ->add_option("--solution", options->solutions,
                   "which solution (default: the job's); may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--set", options->set, "KEY=VALUE: change what JOB says; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "seed of all randomness (default: the job's)")
      ->type_name("S");
  command->add_option("--at-most", options->at_most, "end after so much virtual time, such as 1h")
      ->type_name("TIME");
  command
      ->add_option("--measure", options->measure,
                   "a JOB with real data or devices is trained for at most so long, to measure "
                   "them (default 2m)")
      ->type_name("TIME");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = simulate(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
