#include "launcher/commands/simulate/fleet_job.h"

#include <fmt/format.h>

#include <optional>

#include "core/drill/drill_json.h"
#include "core/role_protocol.h"
#include "core/schema/units.h"
#include "core/sync_strategy.h"
#include "jobd/programs/job_spec.h"
#include "launcher/plan/strategies.h"
#include "launcher/view/text_table.h"
#include "sim/fleet/ideal.h"

namespace antdt::cli {
namespace {

void print(const std::vector<fleet::Comparison>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const fleet::Comparison& c : lines) {
    rows.push_back({c.situation, c.solution, launcher::grouped(c.workers),
                    fmt::format("{:.1f}", c.job_seconds), fmt::format("{:.1f}", c.ideal_seconds),
                    fmt::format("{:.3f}", c.share_of_ideal()),
                    c.speedup_over_none ? fmt::format("{:.2f}", *c.speedup_over_none) : "-",
                    launcher::grouped(c.actions), launcher::grouped(c.records_repeated),
                    launcher::grouped(c.records_lost)});
  }
  for (const std::string& line :
       launcher::text_table({"situation", "solution", "workers#", "job s#", "ideal s#", "of ideal#",
                             "over none#", "actions#", "repeated#", "lost#"},
                            rows)) {
    fmt::print("{}\n", line);
  }
}

}  // namespace

Status can_be_played(const launcher::JobConfig& config) {
  if (!speaks(config.roles.worker.protocol, Protocol::kAntdt)) {
    return fail(ErrorKind::kUsage,
                "a program of protocol \"{}\" is not simulated: only those that speak the antdt "
                "protocol are",
                config.roles.worker.protocol);
  }
  if (config.trainer.sync == launcher::plan::kAutoSync) {
    return fail(
        ErrorKind::kUsage,
        "trainer.sync = \"auto\" is decided when a job is started: name the way that is to be "
        "simulated with --set trainer.sync=…");
  }
  return {};
}

Status can_decide(const std::string& solution) {
  if (solution == "command") {
    return fail(ErrorKind::kUsage,
                "a program of your own (solution = \"command\") is not asked in virtual time: "
                "name another solution with --solution");
  }
  ANTDT_TRY([[maybe_unused]] const auto made, ctl::make_solution(solution));
  return {};
}

bool in_collective(const launcher::JobConfig& config) {
  const auto sync = by_name<SyncStrategy>(config.trainer.sync);
  return sync && antdt::in_collective(*sync);
}

Result<PlayedJob> play(const FleetJob& job, const fleet::Speeds& speeds,
                       const std::string& solution) {
  ANTDT_RETURN_IF_ERROR(can_decide(solution));
  fleet::Setup setup;
  jobd::DataFound data;
  data.train_records = job.train_records;  // evaluation is not simulated
  ANTDT_TRY(setup.machine, jobd::machine_config(job.config, data));
  ANTDT_TRY(setup.solution, ctl::make_solution(solution));
  setup.hosts = job.hosts;
  setup.workers = job.config.roles.worker.count;
  setup.servers = job.config.roles.server.processes();
  setup.seed = job.config.job.seed;
  setup.limit = job.limit;
  setup.costs = job.costs;
  if (job.config.control.share_steps) {
    setup.sharing.emplace();
    setup.sharing->multiple_of = setup.machine.control.rules.multiple_of;
  }
  ANTDT_TRY(setup.emulation, drill::parse_emulation(launcher::to_json(job.config)));
  ANTDT_TRY(const fleet::Played played, fleet::Player(std::move(setup), speeds).play());
  const ctl::JobReport& report = played.report;
  if (report.outcome && report.outcome->state != JobEnd::kDone) {
    return fail(ErrorKind::kInternal, "the simulated job failed with solution \"{}\": {}", solution,
                report.outcome->first_cause);
  }
  PlayedJob outcome;
  fleet::Comparison& line = outcome.line;
  line.situation = job.config.job.name;
  line.solution = solution;
  line.workers = job.config.roles.worker.count;
  line.job_seconds = played.seconds;
  fleet::Work work;
  work.workers = line.workers;
  work.samples = static_cast<double>(report.samples_done);
  work.global_batch = static_cast<double>(job.config.batch.global);
  if (in_collective(job.config)) {
    work.step_cost_s = job.costs.scaled_s(job.costs.exchange_s(line.workers), line.workers);
    work.recorded_cost_scale = job.costs.scaled_s(1, line.workers);
  } else {
    work.step_cost_s = 2 * job.costs.round_trip_s;
  }
  line.ideal_seconds = fleet::ideal_seconds(speeds, work);
  line.actions = fleet::applied_actions(played);
  line.records_repeated = report.totals.repeated;
  line.records_lost = report.totals.lost;
  if (line.job_seconds > 0) outcome.samples_per_second = work.samples / line.job_seconds;
  return outcome;
}

Result<std::vector<fleet::Comparison>> play_each(const FleetJob& job, const fleet::Speeds& speeds,
                                                 const std::vector<std::string>& solutions) {
  std::optional<double> none;
  std::vector<PlayedJob> outcomes;
  for (const std::string& solution : solutions) {
    ANTDT_TRY(PlayedJob outcome, play(job, speeds, solution));
    if (solution == "none") none = outcome.samples_per_second;
    outcomes.push_back(std::move(outcome));
  }
  if (!none) {
    ANTDT_TRY(const PlayedJob outcome, play(job, speeds, "none"));
    none = outcome.samples_per_second;
  }
  std::vector<fleet::Comparison> lines;
  for (PlayedJob& outcome : outcomes) {
    if (*none > 0) outcome.line.speedup_over_none = outcome.samples_per_second / *none;
    lines.push_back(outcome.line);
  }
  return lines;
}

void print_comparison(const std::vector<fleet::Comparison>& lines, bool json) {
  if (!json) return print(lines);
  fmt::print("{}\n", fleet::to_json(lines));
}

Status grow(FleetJob& job, std::uint32_t workers) {
  launcher::JobConfig& config = job.config;
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
  config.data.shard_records = scaled(config.data.shard_records);
  config.roles.worker.count = workers;
  job.train_records = scaled(job.train_records);
  return {};
}

}  // namespace antdt::cli
