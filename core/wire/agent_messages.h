// What an agent does for a job: between the job daemon, or the launcher, and an agent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// The agent's answer: what this host is and what runs there for the job.
struct AgentWelcome {
  std::uint32_t version = 0;
  std::string host;     // its name for people
  std::string address;  // where its workers can be reached by other hosts' workers
  double cpus = 0;      // not yet leased
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  std::vector<RunningProcess> running;
  // The user as whom it starts the processes of who asks; "" of an earlier release.
  std::string user = {};
  ANTDT_MESSAGE("agent-welcome") {
    v("version", m.version);
    v("host", m.host);
    v("address", m.address);
    v("cpus", m.cpus);
    v("memory_bytes", m.memory_bytes);
    v("devices", m.devices);
    v("running", m.running);
    v("user", m.user);
  }
};

struct EnvVar {
  std::string name;
  std::string value;
  ANTDT_PART {
    v("name", m.name);
    v("value", m.value);
  }
};

// Start a process of the job (envelope: worker, attempt). Repeating it for an
// attempt that was started already answers ProcessStarted again.
struct StartProcess {
  std::string role;
  std::vector<std::string> command;
  std::vector<EnvVar> env;  // added to the agent's own, after stale values are removed
  std::string working_directory;
  std::string run_dir;      // logs go to run_dir/logs/<worker>.<attempt>.{out,err}
  std::string config_json;  // handed to the worker in WorkerWelcome
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
  std::uint64_t log_bytes = 0;  // bound for each of the two log files, rotated
  std::uint32_t orphan_timeout_ms = 0;
  std::uint32_t report_ms = 1000;  // how often the agent sends Metrics
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
  }
};

struct ProcessStarted {
  std::uint32_t pid = 0;
  ANTDT_MESSAGE("process-started") { v("pid", m.pid); }
};

// Repeated until acknowledged by ExitSeen. `error` is set when the program
// could not be executed at all.
struct ProcessExited {
  std::int32_t code = -1;   // exit code, or -1
  std::int32_t signal = 0;  // signal that ended it, or 0
  std::string error;
  std::string last_lines;  // end of its standard error, at most 4 KiB
  std::string oom;         // evidence that memory ran out ("cgroup: 1 oom_kill"); empty: none
  ANTDT_MESSAGE("process-exited") {
    v("code", m.code);
    v("signal", m.signal);
    v("error", m.error);
    v("last_lines", m.last_lines);
    v("oom", m.oom);
  }
};

struct ExitSeen {
  ANTDT_MESSAGE("exit-seen") {}
};

// SIGTERM to the worker's whole session, SIGKILL after the grace.
struct StopProcess {
  std::uint32_t grace_ms = 0;
  ANTDT_MESSAGE("stop-process") { v("grace_ms", m.grace_ms); }
};

// What an agent saw of a process from outside, and of its host. What it could not see
// is 0, like what there was nothing of.
struct HostProbe {
  std::uint64_t looked_us = 0;  // the time that the others are a part of; 0: did not look
  std::uint64_t ran_us = 0;     // on a CPU; all threads of the process, added up
  std::uint64_t queued_us = 0;  // could run and had no CPU; likewise
  // A bound on its CPU time held it back: of its cgroup, or of a drill.
  std::uint64_t throttled_us = 0;
  std::uint64_t stolen_us = 0;  // CPUs of the host gave to other machines; mean of them
  // Somebody waited for CPU, disk or memory: in its cgroup, else on the host.
  std::uint64_t cpu_stalled_us = 0;
  std::uint64_t io_stalled_us = 0;
  std::uint64_t memory_stalled_us = 0;
  // The clocks of an accelerator that it computes on were held down, by heat or power.
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

// A tcp port that is free on the agent's host now, for MASTER_PORT.
struct ReservePort {
  ANTDT_MESSAGE("reserve-port") {}
};

struct ReservedPort {
  std::uint32_t port = 0;
  ANTDT_MESSAGE("reserved-port") { v("port", m.port); }
};

// Job daemon to agent and back: the link is alive. Every second.
struct Heartbeat {
  ANTDT_MESSAGE("heartbeat") {}
};

// The job is over: forget it (and, for a private agent, end).
struct Detach {
  ANTDT_MESSAGE("detach") {}
};

// Launcher to its private agent: start and keep the job daemon of this run.
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
