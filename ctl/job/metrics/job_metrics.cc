#include "ctl/job/metrics/job_metrics.h"

#include "ctl/job/metrics/worker_metrics.h"

namespace antdt::ctl {
namespace {

using metrics::Families;
using metrics::Family;

double number(std::uint64_t value) { return static_cast<double>(value); }
double truth(bool value) { return value ? 1 : 0; }

void add_state(const JobReport& r, const DaemonCounts& daemon, Families& out) {
  out.gauge("antdt_build_info", "1, with the version of AntDT as a label.")
      .add(1, {{"version", daemon.version}});
  Family& state = out.gauge("antdt_job_state", "1 for the state in which the job is, else 0.");
  for (const std::string_view name : names_of(JobState{})) {
    state.add(truth(name == name_of(r.state)), {{"state", std::string(name)}});
  }
  out.gauge("antdt_job_incarnation", "How often the job's daemon was started.",
            number(r.incarnation.value));
  out.gauge("antdt_job_generation", "How often a group of workers was formed.",
            number(r.generation.value));
  out.gauge("antdt_job_lineage", "1, and one more each time training went back to a checkpoint.",
            number(r.lineage.value));
  out.counter("antdt_job_wall_seconds_total", "Time since the job began, over all its daemons.",
              r.wall_seconds);
  out.counter("antdt_job_training_seconds_total", "Time of the job's training phases.",
              r.training_seconds);
}

void add_trouble(const JobReport& r, Families& out) {
  out.gauge("antdt_job_waits_for_processes", "1 if training waits for processes, else 0.",
            truth(!r.waiting_for.empty()));
  out.gauge("antdt_job_disk_stalled",
            "1 if a filesystem of the run does not answer or the journal's is full, else 0.",
            truth(!r.disk_trouble.empty()));
  out.gauge("antdt_job_solution_failed",
            "1 if the user's own program for control decides nothing now, else 0.",
            truth(!r.solution_trouble.empty()));
  out.gauge("antdt_job_script_hangs", "1 if the ranks of a traced script hang, else 0.",
            truth(r.hang && !r.hang->over));
}

void add_progress(const JobReport& r, Families& out) {
  out.gauge("antdt_job_epoch", "The present epoch, from 0.", r.epoch);
  out.gauge("antdt_job_epochs", "Epochs of the job.", r.epochs);
  out.gauge("antdt_job_step",
            "The last step. It goes back when training goes back to a checkpoint.",
            number(r.step.value));
  out.gauge("antdt_job_samples_done", "Samples trained so far, of antdt_job_samples_wanted.",
            number(r.samples_done));
  out.gauge("antdt_job_samples_wanted", "Samples to train in the whole job; 0: not known.",
            number(r.samples_total));
  out.gauge("antdt_job_samples_per_second", "Present speed of the job.", r.samples_per_second);
  if (r.train_loss)
    out.gauge("antdt_job_train_loss", "Recent loss of the training.", *r.train_loss);
}

void add_records(const JobReport& r, Families& out) {
  Family& records =
      out.gauge("antdt_job_records", "Records of all epochs, by what became of them.");
  records.add(number(r.totals.once), {{"outcome", "once"}});
  records.add(number(r.totals.repeated), {{"outcome", "repeated"}});
  records.add(number(r.totals.lost), {{"outcome", "lost"}});
  records.add(number(r.totals.skipped), {{"outcome", "skipped"}});
  records.add(number(r.totals.unaccounted), {{"outcome", "unaccounted"}});
  out.gauge("antdt_job_delivery_broken",
            "1 if records were repeated or lost against the job's promise, else 0.",
            truth(!is_kept(r.delivery, r.totals.repeated, r.totals.lost)));
}

void add_past(const JobReport& r, const PastCounts& past, const DaemonCounts& daemon,
              Families& out) {
  Family& actions = out.counter("antdt_job_actions_total", "Actions of control and of operators.");
  for (const auto& [key, count] : past.actions()) {
    actions.add(number(count), {{"kind", key.first}, {"outcome", key.second}});
  }
  Family& failures = out.counter("antdt_job_failures_total", "Failures of processes, by class.");
  for (const auto& [cls, count] : past.failures()) failures.add(number(count), {{"class", cls}});
  Family& left = out.gauge("antdt_job_failure_budget_left",
                           "How many more failures of the class the job tolerates.");
  for (const BudgetReport& b : r.budgets) left.add(b.left, {{"class", b.cls}});
  Family& events = out.counter("antdt_job_events_total",
                               "Events in events.jsonl, by kind, since the daemon was started.");
  // A rule sees that a counter grows only if it was there before.
  std::map<std::string, std::uint64_t> counts = daemon.events;
  for (const char* of_a_rule :
       {"checkpoint-failed", "checkpoint-damaged", "checkpoint-unknown", "copy-failed"}) {
    counts.emplace(of_a_rule, 0);
  }
  for (const auto& [kind, count] : counts) events.add(number(count), {{"kind", kind}});
}

void add_hosts(const JobReport& r, Families& out) {
  Family& up = out.gauge("antdt_job_host_up", "1 if the host's agent answers the job, else 0.");
  Family& closed = out.gauge("antdt_job_host_closed", "1 if the host was evicted, else 0.");
  Family& avoided = out.gauge("antdt_job_host_avoided",
                              "1 if the host failed often lately, so that it is avoided, else 0.");
  for (const HostReport& h : r.hosts) {
    up.add(truth(h.up), {{"host", h.name}});
    closed.add(truth(h.closed), {{"host", h.name}});
    avoided.add(truth(h.probation), {{"host", h.name}});
  }
}

metrics::Labels pair_labels(const report::TrafficBetween& t) {
  return {
      {"from", t.from}, {"from_domain", t.from_domain}, {"to", t.to}, {"to_domain", t.to_domain}};
}

// The pairs of hosts are left out where they are too many to be told in full, because which of them
// are told then changes.
void add_traffic(const JobReport& r, Families& out) {
  if (!r.traffic) return;
  const report::Traffic& t = *r.traffic;
  Family& sent = out.counter("antdt_traffic_bytes_total",
                             "Bytes that workers sent in collectives, by what they were sent for.");
  sent.add(number(t.gradients_bytes), {{"kind", "gradients"}});
  sent.add(number(t.parameters_bytes), {{"kind", "parameters"}});
  sent.add(number(t.slots_bytes), {{"kind", "slots"}});
  sent.add(number(t.healing_bytes), {{"kind", "healing"}});
  sent.add(number(t.other_bytes), {{"kind", "other"}});
  out.counter("antdt_traffic_shared_memory_bytes_total",
              "Those of antdt_traffic_bytes_total that went through the memory of a host.",
              number(t.shared_memory_bytes));
  if (t.hosts_left_out > 0) return;
  Family& bytes = out.counter("antdt_traffic_between_bytes_total",
                              "Bytes that workers on one host sent to workers on another.");
  Family& waits = out.counter("antdt_traffic_waited_seconds_total",
                              "Time that workers on one host waited for workers on another.");
  for (const report::TrafficBetween& pair : t.hosts) {
    bytes.add(number(pair.sent_bytes), pair_labels(pair));
    waits.add(pair.waited_seconds, pair_labels(pair));
  }
}

}  // namespace

metrics::Histogram commit_times() {
  return metrics::Histogram(
      {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30});
}

metrics::Families job_metrics(const JobReport& report, const PastCounts& past,
                              const DaemonCounts& daemon) {
  Families out(metrics::Labels{{"antdt_job", report.job}});
  add_state(report, daemon, out);
  add_trouble(report, out);
  add_progress(report, out);
  add_records(report, out);
  add_past(report, past, daemon, out);
  add_hosts(report, out);
  add_traffic(report, out);
  add_worker_metrics(report, out);
  add_server_metrics(report, out);
  out.histogram("antdt_journal_commit_seconds", "Time that a commit of the job's journal took.",
                daemon.journal_commits);
  return out;
}

}  // namespace antdt::ctl
