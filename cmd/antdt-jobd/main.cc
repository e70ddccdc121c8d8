// antdt-jobd: the daemon of one job. An agent starts it and keeps it running.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cmd/antdt-jobd/standby_flags.h"
#include "core/clock.h"
#include "core/log/background_log.h"
#include "core/log/log.h"
#include "core/loop.h"
#include "core/os/process.h"
#include "core/standstill_clock.h"
#include "core/transport/socket.h"
#include "jobd/job_daemon.h"

namespace {

constexpr antdt::Duration kLastWords = std::chrono::seconds(1);

// With this exit code, its agent takes the trouble for temporary and starts it again
// (antdtd/agent/job_keeper.h).
constexpr int kTryAgain = 5;

// Whether this job had a daemon before; the agent numbers them.
bool is_restart() {
  const char* const attempt = std::getenv("ANTDT_JOBD_ATTEMPT");
  return attempt != nullptr && std::strtoull(attempt, nullptr, 10) > 1;
}

// The exit code for a daemon that could not begin. The first one's error is for the user, who is
// waiting, to mend. Later the job is presumed healthy, and such an error must not end it.
int exit_code_of(const antdt::Error& error) {
  if (error.kind == antdt::ErrorKind::kAborted) return 3;  // another host has the job
  if (is_restart()) return kTryAgain;
  switch (error.kind) {
    case antdt::ErrorKind::kUsage:
      return 2;
    case antdt::ErrorKind::kUnreachable:
      return 3;
    case antdt::ErrorKind::kIo:  // for example a full disk: its agent tries again
      return kTryAgain;
    default:
      return 4;
  }
}

}  // namespace

int main(int argc, char** argv) {
  antdt::ignore_sigpipe();
  antdt::raise_open_files_limit();
  antdt::keep_freed_memory();
  CLI::App app{"The daemon of one AntDT job. It is started by an agent; see antdt(1)."};
  antdt::jobd::Options options;
  antdt::StandbyFlags flags;
  std::string log_file;
  app.add_option("--run-dir", options.run_dir, "Run directory, made by antdt run")->required();
  app.add_option("--socket-dir", options.socket_dir, "Private directory for jobd.sock");
  app.add_option("--agent-socket", options.agent_socket, "Control socket of the private agent");
  app.add_option("--state-dir", options.state_dir,
                 "Where state.db is (default: the run directory)");
  flags.add_to(app);
  app.add_option("--log-file", log_file, "Log file (default: RUN/jobd.log)");
  app.set_version_flag("--version", "antdt-jobd " ANTDT_VERSION);
  CLI11_PARSE(app, argc, argv);
  if (flags.standby.journal.empty() == options.socket_dir.empty()) {
    std::fprintf(stderr, "antdt-jobd: one of --socket-dir and --standby is required\n");
    return 2;
  }
  if (options.state_dir.empty()) options.state_dir = options.run_dir;
  if (log_file.empty()) log_file = options.run_dir + "/jobd.log";

  const antdt::SteadyClock real;
  auto log = flags.make_run_directory(options.run_dir).and_then([&] {
    return antdt::BackgroundLog::start("antdt-jobd", {log_file}, real);
  });
  if (!log) {
    std::fprintf(stderr, "antdt-jobd: %s\n", log.error().message.c_str());
    return is_restart() ? kTryAgain : 2;
  }
  options.is_restart = is_restart();
  options.version = ANTDT_VERSION;
  options.before_abort = [&log] { log->flush(kLastWords); };
  const antdt::StandstillClock clock(real);
  antdt::EventLoop loop(clock);
  antdt::transport::Context context;
  auto daemon = flags.begin(loop, real, context, options);
  if (!daemon && flags.was_ended(daemon.error())) return 0;
  if (!daemon) {
    antdt::log_error("{}", daemon.error().message);
    std::fprintf(stderr, "antdt-jobd: %s\n", daemon.error().message.c_str());
    return exit_code_of(daemon.error());
  }
  const auto signals = loop.watch_signals({SIGTERM, SIGINT}, [&](int signal) {
    (*daemon)->stop_job(fmt::format("the job daemon got signal {}", signal),
                        std::chrono::seconds(10));
  });
  if (!signals) {
    antdt::log_error("{}", signals.error().message);
    return exit_code_of(signals.error());
  }
  loop.run();
  const int code = (*daemon)->exit_code();
  const bool disks_answer = (*daemon)->end_disks(kLastWords);
  if (!log->end(kLastWords) || !disks_answer)
    ::_exit(code);  // in that case no thread can be joined
  return code;
}
