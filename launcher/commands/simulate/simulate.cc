// antdt simulate: simulates a job in virtual time, with any number of workers.
#include <fmt/format.h>

#include <memory>

#include "core/drill/drill_json.h"
#include "core/schema/units.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/simulate/fleet_job.h"
#include "sim/fleet/drill_speeds.h"

namespace antdt::cli {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> set;
  std::vector<std::string> solutions;
  std::uint32_t workers = 0;  // 0: the number in the job file
  std::uint64_t seed = 0;     // 0: the job's seed
  std::string at_most;        // limit of virtual time; empty: until the job's end
  bool json = false;
};

// The job with the number of workers that is simulated.
struct Simulated {
  FleetJob fleet;
  fleet::DrillSpeeds speeds;
};

Status check(const launcher::JobConfig& config) {
  ANTDT_RETURN_IF_ERROR(can_be_played(config));
  if (config.data.format == "index") return {};
  return fail(ErrorKind::kUsage,
              "only jobs whose data is a number of records are simulated: [data] format = "
              "\"index\" and records = N");
}

// A larger fleet is equivalent to several such jobs side by side: each worker's part of a step and
// the number of steps stay the same.
Status grow(launcher::JobConfig& config, std::uint32_t workers) {
  const std::uint64_t before = std::max<std::uint32_t>(config.roles.worker.count, 1);
  const auto scaled = [&](std::uint64_t n) { return (n * workers + before - 1) / before; };
  const std::uint64_t global =
      scaled(config.batch.global) / config.batch.multiple_of * config.batch.multiple_of;
  if (global == 0 || global > UINT32_MAX) {
    return fail(ErrorKind::kUsage,
                "a global batch of {} samples for {} workers would be {} for {}: choose another "
                "[batch] global",
                config.batch.global, before, global, workers);
  }
  config.batch.global = global;
  config.data.records = scaled(config.data.records);
  config.data.shard_records = scaled(config.data.shard_records);
  config.roles.worker.count = workers;
  return {};
}

Result<Simulated> load(const Options& options) {
  ANTDT_TRY(launcher::JobConfig config, launcher::load(options.job, options.set));
  ANTDT_RETURN_IF_ERROR(check(config));
  if (options.seed != 0) config.job.seed = options.seed;
  const std::string json = launcher::to_json(config);
  ANTDT_TRY(auto rules, drill::parse_rules(json));
  ANTDT_TRY(const auto traces, drill::read_traces(rules));
  ANTDT_TRY(auto emulation, drill::parse_emulation(json));
  Duration limit = std::chrono::hours(24 * 365);
  if (!options.at_most.empty()) {
    ANTDT_TRY(limit, schema::parse_duration(options.at_most));
  }
  const std::uint32_t model = std::max<std::uint32_t>(config.roles.worker.count, 1);
  const std::uint32_t workers = options.workers == 0 ? model : options.workers;
  if (workers != model) ANTDT_RETURN_IF_ERROR(grow(config, workers));
  std::vector<std::string> hosts = config.cluster.hosts;
  if (hosts.empty()) hosts.emplace_back("simulated");
  std::vector<std::string> host_of;
  for (std::size_t i = 0; i < workers; ++i) host_of.push_back(hosts[i * hosts.size() / workers]);
  ANTDT_TRY(auto speeds, fleet::DrillSpeeds::make(std::move(emulation), rules, traces, model,
                                                  host_of, config.job.seed));
  const std::uint64_t records = config.data.records;
  return Simulated{{std::move(config), records, std::move(hosts), {}, limit}, std::move(speeds)};
}

Result<int> simulate(const Options& options) {
  ANTDT_TRY(const Simulated job, load(options));
  std::vector<std::string> solutions = options.solutions;
  if (solutions.empty()) solutions = {job.fleet.config.control.solution};
  ANTDT_TRY(const auto lines, play_each(job.fleet, job.speeds, solutions));
  print_comparison(lines, options.json);
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("simulate", "Play a job in virtual time, with up to thousands of workers");
  command->add_option("JOB", options->job, "the job's file, job.toml")->required();
  command
      ->add_option("--workers", options->workers,
                   "how many (default: as the job says); the global batch and the data grow with "
                   "them, and devices repeat")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command
      ->add_option("--solution", options->solutions,
                   "which solution (default: the job's), as often as wanted")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--set", options->set, "KEY=VALUE: change what JOB says, as often as wanted")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "of what chance does (default: the job's)")
      ->type_name("S");
  command->add_option("--at-most", options->at_most, "end after so much virtual time, such as 1h")
      ->type_name("TIME");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = simulate(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
