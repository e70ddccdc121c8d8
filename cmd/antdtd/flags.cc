#include "cmd/antdtd/flags.h"

namespace antdt::antdtd {

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
                 "agent-PORT below /var/lib/antdt for root, below ~/.local/state/antdt/HOST "
                 "otherwise; "
                 "with --private, 'state' in --socket-dir)");
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
               "Serve jobs of root, too: root's key is then a root shell");
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
  app.add_option("--nvml", agent.nvml,
                 "NVIDIA's management library, which tells of the GPUs that jobs may lease")
      ->capture_default_str();
  app.add_option("--nvml-patience", agent.nvml_patience_seconds,
                 "Seconds after which a call of that library that has not returned is a trouble")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--device-claims", agent.device_claims,
                 "Directory in which the agents of this machine tell one another which GPUs they "
                 "lease; the same one for all")
      ->capture_default_str();
  app.add_flag("--show-devices", flags.show_devices,
               "Write the GPUs that an agent here would lease as a line of JSON, and end");
  app.add_option("--metrics", agent.metrics,
                 "Serve metrics for Prometheus at this HOST:PORT, such as 127.0.0.1:9401");
  app.add_option("--log-file", agent.log_file, "Append log lines to this file (default: stderr)");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
}

}  // namespace antdt::antdtd
