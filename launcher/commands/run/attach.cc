// antdt attach: shows the live view of antdt run again.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/clock.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/run/watch_run.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

namespace {

constexpr Duration kMayBeAwayFor = std::chrono::seconds(30);
constexpr Duration kTriedAgainEvery = std::chrono::milliseconds(500);

struct AttachOptions {
  std::string run;
  bool json = false;
  ThroughAgent through;
};

// Nothing of the run is on this host, so only whether its daemon is connected to the agent is
// known. The agent may be away for a while, as the job daemon may.
Result<int> attach_through(const AttachOptions& options) {
  launcher::hold_signals();
  const SteadyClock clock;
  MonoTime seen = clock.now();
  bool said = false;
  while (true) {
    const auto there = is_there(options.through, options.run);
    const bool too_long = clock.now() - seen >= kMayBeAwayFor;
    if (!there) {
      const bool may_pass = there.error().kind == ErrorKind::kUnreachable;
      if (!may_pass || too_long) return tl::unexpected<Error>(there.error());
      if (!std::exchange(said, true)) {
        fmt::print(stderr, "no answer from the agent {}: it is asked again, for {:g} s in all\n",
                   options.through.agent, to_seconds(kMayBeAwayFor));
      }
      if (const int signal = launcher::held_signal_within(kTriedAgainEvery); signal != 0)
        return 128 + signal;
      continue;
    }
    said = false;
    if (!*there) {
      return fail(ErrorKind::kUnreachable,
                  "{} does not have job {} any more: how it ended is in the run directory on the "
                  "host of its job daemon, or of antdt run",
                  options.through.agent, options.run);
    }
    // A watch takes a while to end, so the agent is asked again before this is said.
    if (too_long) {
      return fail(ErrorKind::kUnreachable, "no daemon of job {} is connected to {}", options.run,
                  options.through.agent);
    }
    ANTDT_TRY(RunningJob job, reach(options.run, options.through));
    launcher::WatchOptions watch;
    watch.run_dir = job.run_dir;
    watch.control = job.control;
    watch.out = talk(options.json);
    watch.signals_stop = false;
    ANTDT_TRY(const launcher::WatchEnd end, launcher::watch(std::move(job.link), watch));
    if (end.signal != 0) return 128 + end.signal;
    if (end.has_heard) seen = clock.now();
    if (const int signal = launcher::held_signal_within(kTriedAgainEvery); signal != 0) {
      return 128 + signal;
    }
  }
}

Result<int> attach(const AttachOptions& options) {
  if (options.through.wanted()) return attach_through(options);
  const bool json = options.json;
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  RunState state = state_of(run_dir);
  ANTDT_RETURN_IF_ERROR(check_seen(run_dir));
  // Locks may be shared with the machine on which its daemon runs.
  const bool elsewhere =
      state == RunState::kBrokenOff || !launcher::started_elsewhere(run_dir).empty();
  if (state == RunState::kBrokenOff) state = state_elsewhere(run_dir);
  if (state == RunState::kEnded) return print_summary(run_dir, json);
  if (state == RunState::kBrokenOff) {
    return tl::unexpected<Error>(launcher::broken_off(run_dir));
  }
  ANTDT_TRY(const launcher::RunControl control, launcher::read_control(run_dir));
  launcher::hold_signals();
  fmt::print(talk(json), "{} in {}; Ctrl-C ends the watching only (antdt stop {} ends the job)\n",
             control.job, run_dir, run_dir);
  std::fflush(talk(json));
  const WatchRun watch{run_dir, control, {}, json, false};
  transport::Context context;
  ANTDT_TRY(const int code, elsewhere ? watch_elsewhere(watch) : watch_run(context, watch));
  if (code > 128 && (elsewhere || state_of(run_dir) == RunState::kRunning)) {
    fmt::print(talk(json), "the job goes on\n");
  }
  return code;
}

}  // namespace

void add_attach(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<AttachOptions>();
  CLI::App* command = app.add_subcommand("attach", "Watch a running job until it ends");
  command->add_option("RUN", options->run,
                      std::string(kJobHelp) + " (default: the newest running)");
  command->add_flag("--json", options->json, "print only JSON to standard output");
  add_agent_options(*command, options->through, help_with_job("watch the job of another user"));
  command->callback([options, &exit_code] {
    const auto code = attach(*options);
    exit_code = code ? *code : report(code.error());
  });
}

}  // namespace antdt::cli
