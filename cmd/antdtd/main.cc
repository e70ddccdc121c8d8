// antdtd: the agent of one host. Connects the parts.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <optional>

#include "antdtd/agent/service_link.h"
#include "antdtd/agent/setup.h"
#include "antdtd/shim/cgroup.h"
#include "cmd/antdtd/flags.h"
#include "core/log/background_log.h"
#include "core/log/log.h"
#include "core/os/process.h"

namespace {

enum ExitCode { kFailed = 1, kUsageError = 2, kUnreachable = 3 };
constexpr antdt::Duration kGoodbye = std::chrono::seconds(1);
using antdt::antdtd::Flags;

int exit_code(const antdt::Error& error) {
  std::cerr << "antdtd: " << error.message << "\n";
  if (error.kind == antdt::ErrorKind::kUsage) return kUsageError;
  return error.kind == antdt::ErrorKind::kUnreachable ? kUnreachable : kFailed;
}

int serve(const Flags& given) {
  const auto level = antdt::parse_log_level(given.log_level);
  if (!level) return exit_code(level.error());
  const auto flags = antdt::antdtd::complete(given.agent);
  if (!flags) return exit_code(flags.error());
  const antdt::NotifySettings asked = antdt::antdtd::take_settings_of_manager(*flags);
  const antdt::SteadyClock clock;
  auto log = antdt::BackgroundLog::start("antdtd", {flags->log_file, *level}, clock);
  if (!log) return exit_code(log.error());
  antdt::antdtd::ServiceLink manager(clock, asked);
  bool finished = false;
  std::optional<antdt::antdtd::Accelerators> accelerators;
  {
    // The context must outlive the sockets, and the loop everything that watches with it.
    antdt::EventLoop loop(clock);
    antdt::transport::Context context;
    auto opened = antdt::antdtd::open_agent(loop, context, *flags);
    if (!opened) return exit_code(opened.error());
    const auto watched = loop.watch_signals({SIGTERM, SIGINT}, [&](int signal) {
      antdt::log_info("signal {}: ending; the processes run on for the next agent", signal);
      manager.stopping();
      loop.stop();
    });
    if (!watched) return exit_code(watched.error());
    antdt::log_info("listening on {}, workers on {}/workers.sock", opened->listening,
                    flags->socket_dir);
    accelerators.emplace(flags->nvml, antdt::from_seconds(flags->nvml_patience_seconds));
    // Its thread has these signals blocked, too.
    accelerators->await_first_look(antdt::antdtd::kFirstLook);
    std::optional<antdt::antdtd::Agent> agent;
    const auto metrics = antdt::antdtd::open_metrics(loop, *flags, agent);
    if (!metrics) return exit_code(metrics.error());
    agent.emplace(loop, std::move(opened->parts), std::move(opened->options), *accelerators);
    manager.ready(loop, [&agent] { return agent->summary(); });
    loop.run();
    finished = agent->finished();
  }
  if (finished) antdt::antdtd::remove_traces(*flags);
  if (!accelerators->end(kGoodbye)) {
    antdt::log_warn("a call to NVML is held up by a device: ending without its end");
    log->flush(kGoodbye);
    _exit(0);
  }
  if (!log->end(kGoodbye)) _exit(0);  // the disk of its log does not answer
  return 0;
}

// A device may hold the library's end up, so this process ends without it.
int show_devices(const antdt::antdtd::AgentFlags& flags) {
  const antdt::SteadyClock clock;
  const auto log = antdt::BackgroundLog::start("antdtd", {"", antdt::LogLevel::kWarn}, clock);
  antdt::antdtd::Accelerators accelerators(flags.nvml,
                                           antdt::from_seconds(flags.nvml_patience_seconds));
  std::cout << antdt::antdtd::devices_json(flags, accelerators) << std::endl;
  if (!accelerators.end(kGoodbye)) _exit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  antdt::ignore_sigpipe();
  antdt::keep_freed_memory();
  CLI::App app(
      "The AntDT agent: starts the processes of jobs on this host, watches them and "
      "relays their messages.",
      "antdtd");
  app.set_version_flag("--version", "antdtd " ANTDT_VERSION);
  Flags flags;
  flags.agent.version = ANTDT_VERSION;
  define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), kUsageError);
  }
  if (flags.show_devices) return show_devices(flags.agent);
  if (!flags.release_cgroup) return serve(flags);
  const auto released = antdt::antdtd::release_cgroup();
  return released ? 0 : exit_code(released.error());
}
