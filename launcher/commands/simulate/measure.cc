#include "launcher/commands/simulate/measure.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "core/schema/units.h"
#include "launcher/commands/simulate/short_run.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/summary_view.h"
#include "shard_server/history/series.h"
#include "sim/fleet/steadiness.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kMeasureEvery{250};

std::string history_of(const std::string& run_dir) {
  const auto control = launcher::read_control(run_dir);
  return (control ? control->state_dir : run_dir) + "/history.db";
}

// A history that is being made cannot be read yet.
fleet::Steadiness look_at(const std::string& run_dir, std::uint32_t workers) {
  std::error_code ignored;
  const std::string history = history_of(run_dir);
  if (!fs::exists(history, ignored)) return {};
  const auto series = shard_server::read_series(history);
  return series ? fleet::steadiness_of(*series, workers) : fleet::Steadiness{};
}

// What is said of a measurement, and what to do if it was too short.
std::string how_measured(const fleet::Steadiness& found, double seconds, bool job_ended) {
  if (found.enough()) return fmt::format("measured for {:.0f} s", seconds);
  const std::string known =
      found.error < 1 ? fmt::format("the speed of {} is known to within {:.0f} % only",
                                    found.worker, 100 * found.error)
                      : fmt::format("too little is known of the speed of {}", found.worker);
  return fmt::format(
      "measured for {:.0f} s: {}{}", seconds, known,
      job_ended ? ", and the job has ended by itself; if that is too little, run it with more "
                  "epochs, and name the run with --from (--set job.epochs=N simulates N epochs)"
                : "; let the job train longer with --measure, or run it and name the run with "
                  "--from");
}

}  // namespace

Result<RecordedRun> measure(const Measuring& what) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load(what.job, what.overrides));
  ANTDT_RETURN_IF_ERROR(can_be_played(config));
  ANTDT_TRY(const Aside aside, Aside::make("antdt-measure"));
  const std::string run_dir = aside.path() + "/run";
  const std::string output = aside.path() + "/output";
  std::vector<std::string> arguments = {"run", what.job, "--run-dir", run_dir, "--json"};
  std::vector<std::string> overrides = what.overrides;
  // Nobody is to be told of this run, and a port may be taken by the job itself.
  overrides.insert(overrides.end(),
                   {"control.solution=none", "control.share_steps=false", "checkpoint.every=0s",
                    "hooks.event=[]", "metrics.listen=\"\"", "metrics.tensorboard=false"});
  for (const std::string& setting : overrides) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  fmt::print(
      stderr, "measuring {}: it trains for at most {}, with equal batches\n", what.job,
      schema::format_duration(std::chrono::duration_cast<std::chrono::microseconds>(what.at_most)));
  ANTDT_TRY(Command job, Command::start(std::move(arguments), output));
  const SteadyClock clock;
  const MonoTime until = clock.now() + what.at_most;
  fleet::Steadiness found;
  while (!job.ended() && !found.enough() && clock.now() < until) {
    std::this_thread::sleep_for(kMeasureEvery);
    found = look_at(run_dir, config.roles.worker.count);
  }
  const bool by_itself = job.ended();
  if (!by_itself) {
    ANTDT_TRY(Command stop, Command::start({"stop", run_dir, "--reason", "measured"}, output));
    stop.await_end();
    job.await_end();
  }
  const auto summary = launcher::read_summary(run_dir);
  if (by_itself && !(summary && summary->exit.code == 0)) {
    return fail(ErrorKind::kUsage,
                "{} could not be measured, because it does not train. antdt run printed:\n{}",
                what.job, end_of_output(output));
  }
  found = look_at(run_dir, config.roles.worker.count);
  const std::string shares = config.control.share_steps ? "true" : "false";
  auto run = load_recorded(
      run_dir, {"control.solution=" + config.control.solution, "control.share_steps=" + shares},
      fleet::Afterwards::kAsUsual);
  if (!run) {
    return fail(run.error().kind,
                "{} could not be measured: {}\nIt printed:\n{}\nRun it, and name the run with "
                "--from",
                what.job, run.error().message, end_of_output(output));
  }
  fmt::print(stderr, "{}\n", how_measured(found, run->speeds.seconds(), by_itself));
  return run;
}

}  // namespace antdt::cli
