// antdt attach: shows the live view of antdt run again.
#include <fmt/format.h>

#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/run/watch_run.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

namespace {

Result<int> attach(const std::string& run, bool json) {
  ANTDT_TRY(const std::string run_dir, find_job(run));
  switch (state_of(run_dir)) {
    case RunState::kEnded:
      return print_summary(run_dir, json);
    case RunState::kBrokenOff:
      ANTDT_RETURN_IF_ERROR(check_not_elsewhere(run_dir));
      return fail(ErrorKind::kUnreachable,
                  "the run in {} was broken off: its processes are gone and left no summary; go "
                  "on with antdt run --resume {}",
                  run_dir, run_dir);
    case RunState::kRunning:
      break;
  }
  ANTDT_TRY(const launcher::RunControl control, launcher::read_control(run_dir));
  launcher::hold_signals();
  fmt::print(talk(json), "{} in {}; Ctrl-C ends the watching only (antdt stop {} ends the job)\n",
             control.job, run_dir, run_dir);
  std::fflush(talk(json));
  transport::Context context;
  ANTDT_TRY(const int code, watch_run(context, {run_dir, control, {}, json, false}));
  if (code > 128 && state_of(run_dir) == RunState::kRunning) {
    fmt::print(talk(json), "the job goes on\n");
  }
  return code;
}

}  // namespace

void add_attach(CLI::App& app, int& exit_code) {
  struct Options {
    std::string run;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("attach", "Watch a running job until it ends");
  command->add_option("JOB", options->run,
                      std::string(kJobHelp) + " (default: the newest running)");
  command->add_flag("--json", options->json, "print only JSON to standard output");
  command->callback([options, &exit_code] {
    const auto code = attach(options->run, options->json);
    exit_code = code ? *code : report(code.error());
  });
}

}  // namespace antdt::cli
