// antdtd: the agent of one host. Reads flags and connects the parts.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <optional>

#include "antdtd/agent/service_link.h"
#include "antdtd/agent/setup.h"
#include "antdtd/shim/cgroup.h"
#include "core/log/background_log.h"
#include "core/log/log.h"
#include "core/os/process.h"

namespace {

enum ExitCode { kFailed = 1, kUsageError = 2, kUnreachable = 3 };
constexpr antdt::Duration kGoodbye = std::chrono::seconds(1);

int exit_code(const antdt::Error& error) {
  std::cerr << "antdtd: " << error.message << "\n";
  if (error.kind == antdt::ErrorKind::kUsage) return kUsageError;
  return error.kind == antdt::ErrorKind::kUnreachable ? kUnreachable : kFailed;
}

struct Flags {
  antdt::antdtd::AgentFlags agent;
  std::string log_level = "info";
  bool release_cgroup = false;
};

void define(CLI::App& app, Flags& flags) {
  auto& agent = flags.agent;
  app.add_option("--listen", agent.listen,
                 "Serve the job daemons of a cluster on this tcp HOST:PORT; needs --keys");
  app.add_option("--keys", agent.keys,
                 "Directory with agent.key and authorized/*.pub, made with antdt keygen");
  app.add_flag("--private", agent.is_private,
               "Serve one job on this machine over a socket in --socket-dir, and keep its job "
               "daemon running; started by antdt run");
  app.add_option("--socket-dir", agent.socket_dir,
                 "Directory of the sockets, made with mode 0700 (default: below the runtime "
                 "directory)");
  app.add_option("--state-dir", agent.state_dir,
                 "Directory of what a later agent needs to adopt running processes (default: "
                 "/var/lib/antdt for root, ~/.local/state/antdt otherwise; with --private, "
                 "'state' in --socket-dir)");
  app.add_option("--host-name", agent.host_name, "Name of this host in what people read");
  app.add_option("--interface", agent.interface,
                 "Network interface by which workers of other hosts reach this one's");
  app.add_option("--address", agent.address, "The same as an address; overrides --interface");
  app.add_option("--cpus", agent.cpus, "CPUs that jobs may lease (default: those usable here)");
  app.add_option("--memory", agent.memory_bytes,
                 "Memory that jobs may lease, as in 16GiB (default: this machine's, or the "
                 "cgroup's limit)")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--allow-root", agent.allow_root,
               "Run as root although every authorized key is then a root shell");
  app.add_option("--idle-exit", agent.idle_exit_seconds,
                 "Private: end when no job was given for this many seconds")
      ->capture_default_str();
  app.add_option("--orphan-timeout", agent.orphan_timeout_seconds,
                 "Private: the job daemon ends when no agent has claimed it for this many seconds")
      ->capture_default_str();
  app.add_option("--cgroup", agent.cgroup,
                 "Directory of a cgroup (version 2) in which workers get groups of their own, or "
                 "'none' (default: the agent's own, if it was delegated to it)");
  app.add_flag("--limit-cpus", agent.limit_cpus,
               "In those groups, give workers no more CPU time than the cpus they lease");
  app.add_flag("--release-cgroup", flags.release_cgroup,
               "Lift the limits of the cgroups below its own and end; for the unit of systemd");
  app.add_flag("--no-successor", agent.no_successor,
               "Private: the job's processes do not start the agent again when it is killed");
  app.add_option("--metrics", agent.metrics,
                 "Serve metrics for Prometheus at this HOST:PORT, such as 127.0.0.1:9401");
  app.add_option("--log-file", agent.log_file, "Append log lines to this file (default: stderr)");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
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
    accelerators.emplace();  // its thread has these signals blocked, too
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
  if (!flags.release_cgroup) return serve(flags);
  const auto released = antdt::antdtd::release_cgroup();
  return released ? 0 : exit_code(released.error());
}
