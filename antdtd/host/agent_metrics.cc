#include "antdtd/host/agent_metrics.h"

#include <utility>

namespace antdt::antdtd {

using metrics::Family;

void ProcessCounts::ended(const ExitStatus& status) {
  const std::string_view how = !status.oom.empty()  ? "out-of-memory"
                               : status.signal != 0 ? "signal"
                               : status.code == 0   ? "done"
                                                    : "error";
  ++ended_[how];
}

namespace {

void add_resources(const AgentFacts& facts, metrics::Families& out) {
  out.gauge("antdt_agent_cpus", "Processors that jobs may lease.", facts.whole.cpus);
  out.gauge("antdt_agent_cpus_free", "Processors that no process leases.", facts.free.cpus);
  out.gauge("antdt_agent_memory_bytes", "Memory that jobs may lease.",
            static_cast<double>(facts.whole.memory_bytes));
  out.gauge("antdt_agent_memory_free_bytes", "Memory that no process leases.",
            static_cast<double>(facts.free.memory_bytes));
  out.gauge("antdt_agent_devices", "Accelerators that jobs may lease.", facts.whole.devices);
  out.gauge("antdt_agent_devices_free", "Accelerators that no process leases.", facts.free.devices);
}

void add_jobs(const AgentFacts& facts, metrics::Families& out) {
  Family& processes =
      out.gauge("antdt_agent_job_processes", "Processes of the job that run on this host.");
  Family& attached = out.gauge("antdt_agent_job_attached",
                               "1 if the job's daemon is connected to this agent, else 0.");
  for (const AgentFacts::Job& job : facts.jobs) {
    const metrics::Labels labels{{"antdt_job", job.job}, {"user", job.user}};
    processes.add(job.processes, labels);
    attached.add(job.attached ? 1 : 0, labels);
  }
}

}  // namespace

metrics::Families agent_metrics(const AgentFacts& facts) {
  metrics::Families out(metrics::Labels{{"host", facts.host}});
  out.gauge("antdt_build_info", "1, with the version of AntDT as a label.")
      .add(1, {{"version", facts.version}});
  add_resources(facts, out);
  out.gauge("antdt_agent_jobs", "Jobs that have processes on this host, or had until lately.",
            static_cast<double>(facts.jobs.size()));
  add_jobs(facts, out);
  out.counter("antdt_agent_processes_started_total", "Processes that this agent started.",
              static_cast<double>(facts.counts.starts()));
  Family& ended = out.counter("antdt_agent_processes_ended_total",
                              "Processes that ended, by how: done (exit code 0), error (another "
                              "one), signal, out-of-memory.");
  for (const auto& [how, count] : facts.counts.ends()) {
    ended.add(static_cast<double>(count), {{"how", std::string(how)}});
  }
  return out;
}

}  // namespace antdt::antdtd
