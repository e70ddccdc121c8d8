#include "ctl/job/report.h"

#include <algorithm>

#include "core/report/job_report.h"
#include "core/report/json.h"
#include "core/wire/time_sums.h"
#include "ctl/job/observers/verdict_watch.h"

namespace antdt::ctl {
namespace {

report::TimeSpent time_spent(const wire::TimeAccount& t) {
  return {.compute = t.compute,
          .data = t.data,
          .collective_wait = t.collective_wait,
          .shard_wait = t.shard_wait,
          .reconfigure = t.reconfigure,
          .checkpoint = t.checkpoint,
          .startup = t.startup,
          .other = t.other};
}

report::Evaluation evaluation(const EpochReport::Eval& eval) {
  report::Evaluation said{eval.records, eval.auc, eval.log_loss, eval.accuracy, {}};
  for (const wire::NamedSum& sum : eval.named) said.sums.emplace(sum.name, sum.sum);
  return said;
}

// Only the newest are in the status, because it is asked for again and again.
constexpr std::size_t kMostInStatus = 100;
template <class T>
std::vector<T> newest(const std::vector<T>& all) {
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), kMostInStatus)), all.end()};
}

std::vector<report::Action> actions_of(const std::vector<ActionReport>& actions) {
  std::vector<report::Action> out;
  for (const ActionReport& a : actions) {
    out.push_back({a.number, a.time_s, a.kind, a.target, a.reason, a.outcome});
  }
  return out;
}

std::vector<report::Failure> failures_of(const std::vector<FailureRecord>& failures) {
  std::vector<report::Failure> out;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const FailureRecord& f = failures[i];
    out.push_back({.time_s = f.time_s,
                   .worker = to_string(f.worker),
                   .attempt = f.attempt.value,
                   .host = f.host,
                   .cls = std::string(name_of(static_cast<FailureClass>(f.cls))),
                   .cause = f.cause,
                   .first = first_cause(failures, f.incident) == i,
                   .recovered_in_s = f.recovered_in_s,
                   .went_back_to = f.went_back_to});
  }
  return out;
}

std::vector<report::Host> hosts_of(const std::vector<HostReport>& hosts) {
  std::vector<report::Host> out;
  for (const HostReport& h : hosts) {
    out.push_back({h.name, h.agent, h.room, h.up, h.closed, h.probation, h.penalty, {}, {}});
    if (!h.drained.empty()) out.back().drained = h.drained;
    if (!h.devices.devices.empty() || !h.devices.trouble.empty()) {
      out.back().devices = report::report_of(h.devices);
    }
  }
  return out;
}

// The straggler of a verdict, for programs; empty if the worker makes nobody wait.
std::optional<report::Straggler> straggler_of(const Verdict& v) {
  if (!is_straggler(v)) return std::nullopt;
  return report::Straggler{std::string(to_string(v.kind)), v.severity,
                           std::string(to_string(v.cause)), v.seen};
}

std::optional<report::Io> io_of(const IoProgress& io) {
  if (io.what.empty()) return std::nullopt;
  return report::Io{.what = io.what,
                    .path = io.path,
                    .done_bytes = io.done_bytes,
                    .total_bytes = io.total_bytes,
                    .bytes_per_second = io.bytes_per_second,
                    .text = io_text(io)};
}

report::DeviceClass device_of(const Device& device) {
  return {device.name, device.max_micro_batch};
}

double mean_pause_us(const wire::PsStats& said) {
  if (said.cuts == 0) return 0;
  return static_cast<double>(said.cut_pause_us_sum) / static_cast<double>(said.cuts);
}

report::ServerStatus server_of(const ServerReport& s) {
  report::ServerStatus out{.id = to_string(s.server),
                           .host = s.host,
                           .pid = s.pid,
                           .attempt = s.attempt.value,
                           .state = std::string(name_of(s.state)),
                           .rows = s.said.rows,
                           .bytes = s.said.bytes,
                           .requests = s.said.requests,
                           .service_us_p50 = s.said.service_us_p50,
                           .service_us_p99 = s.said.service_us_p99,
                           .checkpoints = s.said.cuts,
                           .checkpoint_pause_us_mean = mean_pause_us(s.said),
                           .checkpoint_pause_us_max = s.said.cut_pause_us_max,
                           .verdict = s.judged ? verdict_text(s.verdict) : "",
                           .straggler = straggler_of(s.verdict),
                           .io = io_of(s.io)};
  if (s.role) out.role = std::string(name_of(*s.role));
  return out;
}

std::vector<report::Skipped> skipped_of(const Totals& totals) {
  std::vector<report::Skipped> out;
  for (const auto& [reason, samples] : totals.skipped_by_program) out.push_back({reason, samples});
  return out;
}

// Numbers that only jobs with parameter servers have. `T`: Status or Summary.
template <class T>
void add_servers(T& out, const JobReport& r) {
  for (const ServerReport& s : r.servers) out.servers.push_back(server_of(s));
  if (r.servers.empty() || !r.servers_decide) return;
  std::uint64_t parts = 0, sum = 0;
  out.staleness.emplace();
  out.pushes.emplace();
  const auto add = [&](const wire::PsStats& said) {
    parts += said.staleness_pushes;
    sum += said.staleness_sum;
    out.staleness->max = std::max(out.staleness->max, said.staleness_max);
    out.pushes->applied += said.pushes_applied;
    out.pushes->late += said.pushes_late;
    out.pushes->repeated += said.pushes_repeated;
  };
  for (const ServerReport& s : r.servers) add(s.said);
  add(r.decided_before);
  out.staleness->mean =
      static_cast<double>(sum) / static_cast<double>(std::max<std::uint64_t>(1, parts));
}

std::optional<report::StepTime> step_time_of(const WorkerReport& w) {
  if (!w.step) return std::nullopt;
  return report::StepTime{1e3 * w.step->data_s, 1e3 * w.step->compute_s, 1e3 * w.step->wait_s};
}

// `T`: Status or Summary.
template <class T>
void add_traced(T& out, const JobReport& r) {
  if (r.traced) {
    out.traced = {r.traced->ranks, r.traced->samples_known, r.traced->steps_per_second,
                  r.traced->runs};
  }
  if (!r.hang) return;
  out.hang = {r.hang->time_s, r.hang->over, r.hang->hang.text};
  for (const WorkerId w : r.hang->hang.culprits) out.hang->culprits.push_back(to_string(w));
  for (const trace::Hang::Stack& s : r.hang->hang.stacks) {
    out.hang->stacks.push_back({to_string(s.worker), s.where, s.stack});
  }
}

// Nothing before the first report.
std::optional<report::TimeSpent> lost_time_of(const WorkerReport& w) {
  if (wire::total(w.time) <= 0) return std::nullopt;
  return time_spent(w.time);
}

// Nothing if the worker had no choice.
std::optional<report::EmbeddingSteps> embedding_steps_of(const WorkerReport& w) {
  if (w.table_sums.as_rows == 0 && w.table_sums.as_whole == 0) return std::nullopt;
  return report::EmbeddingSteps{w.table_sums.as_rows, w.table_sums.as_whole};
}

// Nothing if it exchanged nothing.
std::optional<report::Exchanges> exchanges_of(const WorkerReport& w) {
  if (w.shadow.exchanges == 0) return std::nullopt;
  const auto count = static_cast<double>(w.shadow.exchanges);
  return report::Exchanges{.count = w.shadow.exchanges,
                           .mean_gap_steps = static_cast<double>(w.shadow.steps) / count,
                           .mean_gap_ms = static_cast<double>(w.shadow.gap_us) / 1000 / count,
                           .waited_seconds = static_cast<double>(w.shadow.waited_us) / 1e6};
}

// Nothing if it sent nothing.
std::optional<report::Updates> updates_of(const WorkerReport& w) {
  if (w.updates.messages == 0) return std::nullopt;
  const auto elements = static_cast<double>(std::max<std::uint64_t>(1, w.updates.elements));
  const auto dense = static_cast<double>(std::max<std::uint64_t>(1, w.updates.dense_bytes));
  return report::Updates{.messages = w.updates.messages,
                         .whole = w.updates.whole,
                         .sent_share = static_cast<double>(w.updates.sent) / elements,
                         .bytes_share = static_cast<double>(w.updates.bytes) / dense};
}

report::WorkerStatus worker_of(const WorkerReport& w) {
  return {.id = to_string(w.worker),
          .rank = w.rank,
          .host = w.host,
          .device = device_of(w.device),
          .pid = w.pid,
          .attempt = w.attempt.value,
          .state = std::string(name_of(w.state)),
          .batch = w.batch,
          .samples = w.samples,
          .samples_of_others = w.samples_of_others,
          .samples_per_second = w.samples_per_second,
          .verdict = w.judged ? verdict_text(w.verdict) : "",
          .straggler = straggler_of(w.verdict),
          .tried_again_in_s = w.tried_again_in_s,
          .io = io_of(w.io),
          .step_time = step_time_of(w),
          .cpus = w.cpus,
          .lost_time = lost_time_of(w),
          .embedding_steps = embedding_steps_of(w),
          .exchanges = exchanges_of(w),
          .updates = updates_of(w)};
}

// Numbers that are not known for every job.
void add_progress(report::Status& out, const JobReport& r) {
  out.train_loss = r.train_loss;
  if (r.samples_per_second > 0 && r.samples_total > r.samples_done) {
    out.eta_seconds = static_cast<double>(r.samples_total - r.samples_done) / r.samples_per_second;
  }
  for (auto e = r.epoch_reports.rbegin(); e != r.epoch_reports.rend(); ++e) {
    if (!e->eval) continue;
    out.last_eval = evaluation(*e->eval);
    break;
  }
}

report::Status status_of(const JobReport& r) {
  report::Status out{.job = r.job,
                     .state = std::string(name_of(r.state)),
                     .generation = r.generation.value,
                     .collective = r.collective,
                     .lineage = r.lineage.value,
                     .incarnation = r.incarnation.value,
                     .epoch = r.epoch,
                     .epochs = r.epochs,
                     .step = r.step.value,
                     .samples_done = r.samples_done,
                     .samples_total = r.samples_total,
                     .samples_per_second = r.samples_per_second,
                     .wall_seconds = r.wall_seconds,
                     .message = r.message,
                     .waiting_for = r.waiting_for,
                     .solution_trouble = r.solution_trouble,
                     .disk_trouble = r.disk_trouble,
                     .paused = r.paused,
                     .failures = failures_of(newest(r.failures)),
                     .failures_count = r.failures_before + r.failures.size(),
                     .hosts = hosts_of(r.hosts),
                     .actions = actions_of(newest(r.actions)),
                     .actions_count = r.actions_before + r.actions.size()};
  for (const BudgetReport& b : r.budgets) out.budgets[b.cls] = {b.limit, b.left};
  for (const WorkerReport& w : r.workers) out.workers.push_back(worker_of(w));
  add_progress(out, r);
  out.skipped_by_program = skipped_of(r.totals);
  out.training_ended = r.training_ended;
  add_servers(out, r);
  add_traced(out, r);
  out.servers_count = r.servers_count;
  out.servers_wanted = r.servers_wanted;
  out.traffic = r.traffic;
  out.update_threshold = r.update_threshold;
  if (r.outcome) {
    out.outcome = report::Ending{std::string(name_of(r.outcome->state)), r.outcome->code};
  }
  return out;
}

void add_epochs(report::Summary& out, const JobReport& r) {
  for (const EpochReport& e : r.epoch_reports) {
    auto& epoch = out.epochs.emplace_back(report::EpochSummary{e.train_loss, e.samples, e.seconds});
    if (e.eval) epoch.eval = evaluation(*e.eval);
  }
}

void add_workers(report::Summary& out, const JobReport& r) {
  wire::TimeAccount total;
  for (const WorkerReport& w : r.workers) {
    total += w.time;
    out.workers.push_back({.id = to_string(w.worker),
                           .rank = w.rank,
                           .host = w.host,
                           .pid = w.pid,
                           .attempt = w.attempt.value,
                           .samples = w.samples,
                           .samples_of_others = w.samples_of_others,
                           .wall_seconds = w.wall_seconds,
                           .lost_time = time_spent(w.time),
                           .device = device_of(w.device),
                           .embedding_steps = embedding_steps_of(w),
                           .exchanges = exchanges_of(w),
                           .updates = updates_of(w)});
  }
  out.lost_time = time_spent(total);
}

report::Summary summary_of(const JobReport& r) {
  const Outcome outcome = r.outcome.value_or(Outcome{});
  const std::string exit_class(r.outcome ? name_of(outcome.exit_class) : "");
  report::Summary out{.job = r.job,
                      .state = std::string(name_of(r.state)),
                      .wall_seconds = r.wall_seconds,
                      .training_seconds = r.training_seconds,
                      .steps = r.step.value,
                      .samples_total = r.samples_total,
                      .samples_trained = r.totals.once + r.totals.repeated,
                      .delivery = std::string(to_string(r.delivery)),
                      .samples_repeated = r.totals.repeated,
                      .samples_lost = r.totals.lost,
                      .samples_skipped = r.totals.skipped,
                      .samples_unaccounted = r.totals.unaccounted,
                      .samples_per_second = r.samples_per_second,
                      .generations = r.generation.value,
                      .lineages = r.lineage.value,
                      .incarnations = r.incarnation.value,
                      .collective = r.collective,
                      .failures = failures_of(r.failures),
                      .failures_count = r.failures_before + r.failures.size(),
                      .actions = actions_of(r.actions),
                      .actions_count = r.actions_before + r.actions.size(),
                      .checkpoints = r.checkpoints,
                      .exit = {outcome.code, exit_class, outcome.resumable, outcome.first_cause}};
  out.skipped_by_program = skipped_of(r.totals);
  out.training_ended = r.training_ended;
  out.rows_put_aside = r.rows_put_aside;
  add_epochs(out, r);
  add_workers(out, r);
  out.traffic = r.traffic;
  out.update_threshold = r.update_threshold;
  add_servers(out, r);
  add_traced(out, r);
  return out;
}

}  // namespace

std::string status_json(const JobReport& r) {
  return report::to_text(report::json_of(status_of(r)));
}

std::string summary_json(const JobReport& r) {
  return report::to_text(report::json_of(summary_of(r)), 2) + "\n";
}

}  // namespace antdt::ctl
