// Requests of a job daemon or launcher to an agent, and the agent's reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/device/device_messages.h"
#include "core/wire/drain.h"
#include "core/wire/message.h"
#include "core/wire/worker_messages.h"

namespace antdt::wire {

// Job daemon to agent after Hello: "I am incarnation n of this job".
struct Attach {
  Incarnation incarnation;
  ANTDT_MESSAGE("attach") { v("incarnation", m.incarnation); }
};

struct RunningProcess {
  WorkerId worker;
  Attempt attempt;
  std::uint32_t pid = 0;
  ANTDT_PART {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("pid", m.pid);
  }
};

// The agent's answer: this host's properties, and what runs there for the job.
struct AgentWelcome {
  std::uint32_t version = 0;
  std::string host;     // the host's name for people
  std::string address;  // address at which workers of other hosts can reach its workers
  double cpus = 0;      // not yet leased
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;  // not yet leased, and healthy
  std::vector<RunningProcess> running;
  // The user as whom it starts the processes of this link's jobs; "" from an earlier release.
  std::string user = {};
  std::optional<Drain> drain = {};  // while the host is drained
  HostDevices host_devices = {};    // without devices from an earlier release
  ANTDT_MESSAGE("agent-welcome") {
    v("version", m.version);
    v("host", m.host);
    v("address", m.address);
    v("cpus", m.cpus);
    v("memory_bytes", m.memory_bytes);
    v("devices", m.devices);
    v("running", m.running);
    v("user", m.user);
    v("drain", m.drain);
    v("host_devices", m.host_devices);
  }
};

// Agent to the daemons of all jobs that are attached: the host is drained from now on (or not any
// more).
struct HostDrain {
  std::optional<Drain> drain;
  ANTDT_MESSAGE("host-drain") { v("drain", m.drain); }
};

struct EnvVar {
  std::string name;
  std::string value;
  ANTDT_PART {
    v("name", m.name);
    v("value", m.value);
  }
};

// Starts a process of the job (envelope: worker, attempt). If this attempt was started already, the
// answer is ProcessStarted again.
struct StartProcess {
  std::string role;
  std::vector<std::string> command;
  std::vector<EnvVar> env;  // added to the agent's own variables, after stale ones are removed
  std::string working_directory;
  std::string run_dir;      // logs are written to run_dir/logs/<worker>.<attempt>.{out,err}
  std::string config_json;  // passed to the worker in WorkerWelcome
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  std::uint64_t log_bytes = 0;  // bound for each of the two log files, rotated
  std::uint32_t orphan_timeout_ms = 0;
  std::uint32_t report_ms = 1000;  // how often the agent sends Metrics
  bool share_devices = false;      // other processes that say so, too, may have the same devices
  bool bind_to_devices = true;     // its CPUs and memory are those nearest to its devices
  // Its place among the processes of its role on this host, and how many these are, if they see one
  // another's devices; 0 of 0: it sees its own only.
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 0;
  // The agent writes this before it stores the order; a value from anyone else is not trusted.
  std::optional<DeviceLease> lease = {};
  ANTDT_MESSAGE("start-process") {
    v("role", m.role);
    v("command", m.command);
    v("env", m.env);
    v("working_directory", m.working_directory);
    v("run_dir", m.run_dir);
    v("config_json", m.config_json);
    v("cpus", m.cpus);
    v("memory_bytes", m.memory_bytes);
    v("devices", m.devices);
    v("log_bytes", m.log_bytes);
    v("orphan_timeout_ms", m.orphan_timeout_ms);
    v("report_ms", m.report_ms);
    v("share_devices", m.share_devices);
    v("bind_to_devices", m.bind_to_devices);
    v("local_rank", m.local_rank);
    v("local_size", m.local_size);
    v("lease", m.lease);
  }
};

struct ProcessStarted {
  std::uint32_t pid = 0;
  ANTDT_MESSAGE("process-started") { v("pid", m.pid); }
};

// Repeated until it is acknowledged by ExitSeen. `error` is set if the program could not be
// executed at all.
struct ProcessExited {
  std::int32_t code = -1;   // exit code, or -1
  std::int32_t signal = 0;  // signal that ended it, or 0
  std::string error;
  std::string last_lines;  // end of its standard error, at most 4 KiB
  std::string oom;         // evidence that memory ran out ("cgroup: 1 oom_kill"); empty: none
  // Its host ended it, because the job's daemon, or the host's agent, was silent for the orphan
  // timeout.
  bool orphaned = false;
  std::string device = {};  // what was wrong with a device that it had under lease; empty: nothing
  ANTDT_MESSAGE("process-exited") {
    v("code", m.code);
    v("signal", m.signal);
    v("error", m.error);
    v("last_lines", m.last_lines);
    v("oom", m.oom);
    v("orphaned", m.orphaned);
    v("device", m.device);
  }
};

struct ExitSeen {
  ANTDT_MESSAGE("exit-seen") {}
};

// Sends SIGTERM to the worker's whole process tree, and SIGKILL after the grace.
struct StopProcess {
  std::uint32_t grace_ms = 0;
  ANTDT_MESSAGE("stop-process") { v("grace_ms", m.grace_ms); }
};

// What an agent observed of a process from outside, and of its host. A value that it could not
// observe is 0.
struct HostProbe {
  // the time in which the agent looked, which the other times are parts of; 0: it did not look
  std::uint64_t looked_us = 0;
  std::uint64_t ran_us = 0;     // on a CPU; sum over all threads of the process
  std::uint64_t queued_us = 0;  // runnable without a CPU; sum over all threads
  // Held back by a limit on its CPU time: by its cgroup, or by a fault injection.
  std::uint64_t throttled_us = 0;
  // time for which the host's CPUs ran other machines; mean over the CPUs
  std::uint64_t stolen_us = 0;
  // Some process waited for a CPU, a disk or memory: in the process's cgroup if it has one, else on
  // the host.
  std::uint64_t cpu_stalled_us = 0;
  std::uint64_t io_stalled_us = 0;
  std::uint64_t memory_stalled_us = 0;
  // The clocks of an accelerator on which it computes were held down, by heat or a power limit.
  std::uint64_t clocks_us = 0;
  ANTDT_PART {
    v("looked_us", m.looked_us);
    v("ran_us", m.ran_us);
    v("queued_us", m.queued_us);
    v("throttled_us", m.throttled_us);
    v("stolen_us", m.stolen_us);
    v("cpu_stalled_us", m.cpu_stalled_us);
    v("io_stalled_us", m.io_stalled_us);
    v("memory_stalled_us", m.memory_stalled_us);
    v("clocks_us", m.clocks_us);
  }
};

// Sum of a worker's Reports since the agent's last Metrics.
struct Metrics {
  Report sum;
  std::uint32_t window_ms = 0;
  HostProbe probe{};
  ANTDT_MESSAGE("metrics") {
    v("sum", m.sum);
    v("window_ms", m.window_ms);
    v("probe", m.probe);
  }
};

// Requests a tcp port that is free on the agent's host now, for MASTER_PORT.
struct ReservePort {
  ANTDT_MESSAGE("reserve-port") {}
};

struct ReservedPort {
  std::uint32_t port = 0;
  ANTDT_MESSAGE("reserved-port") { v("port", m.port); }
};

// Job daemon to agent and back, every second: the link is alive.
struct Heartbeat {
  ANTDT_MESSAGE("heartbeat") {}
};

// The job is over: the agent forgets it (and ends, if it is private).
struct Detach {
  ANTDT_MESSAGE("detach") {}
};

// Launcher to its private agent: start the job daemon of this run, and keep it running.
struct StartJob {
  std::string run_dir;
  std::vector<std::string> command;  // antdt-jobd and its flags
  ANTDT_MESSAGE("start-job") {
    v("run_dir", m.run_dir);
    v("command", m.command);
  }
};

struct JobStarted {
  std::uint32_t pid = 0;
  ANTDT_MESSAGE("job-started") { v("pid", m.pid); }
};

}  // namespace antdt::wire
