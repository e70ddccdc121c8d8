// antdt stop: a checkpoint, then the end; the run can be resumed.
#include <fmt/format.h>

#include <memory>
#include <thread>

#include "cmd/antdt/commands.h"
#include "core/transport/socket.h"
#include "launcher/job_link.h"
#include "launcher/run_directory.h"
#include "launcher/units.h"

namespace antdt::cli {

namespace {

// Returns when the job daemon is gone.
Status stop(const std::string& run, const std::string& grace_text) {
  ANTDT_TRY(const std::string run_dir, launcher::find_run(run));
  ANTDT_TRY(const launcher::RunControl control, launcher::read_control(run_dir));
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  std::chrono::milliseconds grace = config.failure.stop_grace;
  if (!grace_text.empty()) {
    ANTDT_TRY(const auto us, launcher::parse_duration(grace_text));
    grace = std::chrono::duration_cast<std::chrono::milliseconds>(us);
  }
  const std::string lock = run_dir + "/jobd.lock";
  if (!FileLock::owner(lock)) {
    return fail(ErrorKind::kUnreachable, "the job of {} does not run: see antdt status {}", run_dir,
                run_dir);
  }
  transport::Context context;
  ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(context, control.jobd_socket));
  ANTDT_RETURN_IF_ERROR(link.stop("antdt stop", grace, std::chrono::seconds(5)));
  const SteadyClock clock;
  const MonoTime deadline = clock.now() + grace + std::chrono::seconds(15);
  while (FileLock::owner(lock)) {
    if (clock.now() > deadline) {
      return fail(ErrorKind::kUnreachable, "the job of {} did not end within its grace of {}",
                  run_dir, launcher::format_duration(grace));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fmt::print("stopped: {}\n", run_dir);
  return {};
}

}  // namespace

void add_stop(CLI::App& app, int& exit_code) {
  struct Options {
    std::string run;
    std::string grace;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("stop", "Stop a run after a checkpoint");
  command->add_option("RUN", options->run, "run directory, or job id below runs/")->required();
  command
      ->add_option("--grace", options->grace,
                   "how long the end may take, such as 10s; default failure.stop_grace")
      ->type_name("TIME");
  command->callback([options, &exit_code] {
    if (const auto done = stop(options->run, options->grace); !done) {
      exit_code = report(done.error());
    }
  });
}

}  // namespace antdt::cli
