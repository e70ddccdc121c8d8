#include "ctl/job/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/wire/time_sums.h"
#include "ctl/job/verdict_watch.h"

namespace antdt::ctl {
namespace {

using nlohmann::json;

json time_json(const wire::TimeAccount& t) {
  return {{"compute", t.compute},
          {"data", t.data},
          {"collective_wait", t.collective_wait},
          {"shard_wait", t.shard_wait},
          {"reconfigure", t.reconfigure},
          {"checkpoint", t.checkpoint},
          {"startup", t.startup},
          {"other", t.other}};
}

json eval_json(const EpochReport::Eval& eval) {
  json out{{"records", eval.records}};
  if (eval.auc) out["auc"] = *eval.auc;
  if (eval.log_loss) out["log_loss"] = *eval.log_loss;
  if (eval.accuracy) out["accuracy"] = *eval.accuracy;
  return out;
}

// The newest, of what is asked for again and again.
constexpr std::size_t kMostInStatus = 100;
template <class T>
std::vector<T> newest(const std::vector<T>& all) {
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), kMostInStatus)), all.end()};
}

json actions_json(const std::vector<ActionReport>& actions) {
  json out = json::array();
  for (const ActionReport& a : actions) {
    out.push_back({{"number", a.number},
                   {"time_s", a.time_s},
                   {"kind", a.kind},
                   {"target", a.target},
                   {"reason", a.reason},
                   {"outcome", a.outcome}});
  }
  return out;
}

// What workers said is bytes, and may begin inside a character.
std::string text_of(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

json failures_json(const std::vector<FailureRecord>& failures) {
  json out = json::array();
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const FailureRecord& f = failures[i];
    json one{{"time_s", f.time_s},
             {"worker", to_string(f.worker)},
             {"attempt", f.attempt.value},
             {"host", f.host},
             {"class", to_string(static_cast<FailureClass>(f.cls))},
             {"cause", f.cause},
             {"first", first_cause(failures, f.incident) == i}};
    one["recovered_in_s"] = f.recovered_in_s ? json(*f.recovered_in_s) : json(nullptr);
    out.push_back(std::move(one));
  }
  return out;
}

json hosts_json(const std::vector<HostReport>& hosts) {
  json out = json::array();
  for (const HostReport& h : hosts) {
    out.push_back({{"name", h.name},
                   {"room", h.room},
                   {"up", h.up},
                   {"closed", h.closed},
                   {"probation", h.probation},
                   {"penalty", h.penalty}});
  }
  return out;
}

json budgets_json(const std::vector<BudgetReport>& budgets) {
  json out = json::object();
  for (const BudgetReport& b : budgets) out[b.cls] = {{"limit", b.limit}, {"left", b.left}};
  return out;
}

// Of whom makes others wait: what the verdict says, for programs.
json straggler_json(const Verdict& v) {
  if (!is_straggler(v)) return nullptr;
  return {{"kind", to_string(v.kind)},
          {"severity", v.severity},
          {"cause", to_string(v.cause)},
          {"seen", v.seen}};
}

// What a process reads or writes now; nothing where there is nothing.
void add_io(json& process, const IoProgress& io) {
  if (io.what.empty()) return;
  process["io"] = {{"what", io.what},
                   {"path", io.path},
                   {"done_bytes", io.done_bytes},
                   {"total_bytes", io.total_bytes},
                   {"bytes_per_second", io.bytes_per_second},
                   {"text", io_text(io)}};
}

double mean_pause_us(const wire::PsStats& said) {
  if (said.cuts == 0) return 0;
  return static_cast<double>(said.cut_pause_us_sum) / static_cast<double>(said.cuts);
}

json servers_json(const std::vector<ServerReport>& servers) {
  json out = json::array();
  for (const ServerReport& s : servers) {
    out.push_back({{"id", to_string(s.server)},
                   {"host", s.host},
                   {"pid", s.pid},
                   {"attempt", s.attempt.value},
                   {"state", s.state},
                   {"rows", s.said.rows},
                   {"bytes", s.said.bytes},
                   {"requests", s.said.requests},
                   {"service_us_p50", s.said.service_us_p50},
                   {"service_us_p99", s.said.service_us_p99},
                   {"checkpoints", s.said.cuts},
                   {"checkpoint_pause_us_mean", mean_pause_us(s.said)},
                   {"checkpoint_pause_us_max", s.said.cut_pause_us_max},
                   {"verdict", s.judged ? verdict_text(s.verdict) : ""},
                   {"straggler", straggler_json(s.verdict)}});
    if (!s.role.empty()) out.back()["role"] = s.role;
    add_io(out.back(), s.io);
  }
  return out;
}

// Of jobs with parameter servers alone: nobody else has these numbers.
void add_servers(json& out, const std::vector<ServerReport>& servers) {
  if (servers.empty()) return;
  wire::PsStats all;
  for (const ServerReport& s : servers) {
    all.staleness_pushes += s.said.staleness_pushes;
    all.staleness_sum += s.said.staleness_sum;
    all.staleness_max = std::max(all.staleness_max, s.said.staleness_max);
    all.pushes_applied += s.said.pushes_applied;
    all.pushes_late += s.said.pushes_late;
    all.pushes_repeated += s.said.pushes_repeated;
  }
  const auto parts = static_cast<double>(std::max<std::uint64_t>(1, all.staleness_pushes));
  out["servers"] = servers_json(servers);
  out["staleness"] = {{"mean", static_cast<double>(all.staleness_sum) / parts},
                      {"max", all.staleness_max}};
  out["pushes"] = {{"applied", all.pushes_applied},
                   {"late", all.pushes_late},
                   {"repeated", all.pushes_repeated}};
}

json device_json(const Device& device) {
  return {{"class", device.name}, {"max_micro_batch", device.max_micro_batch}};
}

}  // namespace

std::string status_json(const JobReport& r) {
  json out{{"job", r.job},
           {"state", r.state},
           {"generation", r.generation.value},
           {"lineage", r.lineage.value},
           {"incarnation", r.incarnation.value},
           {"epoch", r.epoch},
           {"epochs", r.epochs},
           {"step", r.step.value},
           {"samples_done", r.samples_done},
           {"samples_total", r.samples_total},
           {"samples_per_second", r.samples_per_second},
           {"wall_seconds", r.wall_seconds},
           {"message", r.message},
           {"waiting_for", r.waiting_for},
           {"solution_trouble", r.solution_trouble},
           {"disk_trouble", r.disk_trouble},
           {"failures", failures_json(newest(r.failures))},
           {"hosts", hosts_json(r.hosts)},
           {"budgets", budgets_json(r.budgets)},
           {"actions", actions_json(newest(r.actions))},
           {"workers", json::array()}};
  if (r.train_loss) out["train_loss"] = *r.train_loss;
  if (r.samples_per_second > 0 && r.samples_total > r.samples_done) {
    out["eta_seconds"] =
        static_cast<double>(r.samples_total - r.samples_done) / r.samples_per_second;
  }
  for (auto e = r.epoch_reports.rbegin(); e != r.epoch_reports.rend(); ++e) {
    if (!e->eval) continue;
    out["last_eval"] = eval_json(*e->eval);
    break;
  }
  for (const WorkerReport& w : r.workers) {
    json worker{{"id", to_string(w.worker)},
                {"host", w.host},
                {"device", device_json(w.device)},
                {"pid", w.pid},
                {"attempt", w.attempt.value},
                {"state", w.state},
                {"batch", w.batch},
                {"samples", w.samples},
                {"samples_per_second", w.samples_per_second},
                {"verdict", w.judged ? verdict_text(w.verdict) : ""},
                {"straggler", straggler_json(w.verdict)}};
    worker["rank"] = w.rank ? json(*w.rank) : json(nullptr);
    if (w.tried_again_in_s) worker["tried_again_in_s"] = *w.tried_again_in_s;
    add_io(worker, w.io);
    out["workers"].push_back(std::move(worker));
  }
  add_servers(out, r.servers);
  if (r.servers_count > 0) out["servers_count"] = r.servers_count;
  if (r.servers_wanted > 0) out["servers_wanted"] = r.servers_wanted;
  if (r.outcome) out["outcome"] = {{"state", r.outcome->state}, {"code", r.outcome->code}};
  return text_of(out);
}

std::string summary_json(const JobReport& r) {
  json out{{"schema", 1},
           {"job", r.job},
           {"state", r.state},
           {"wall_seconds", r.wall_seconds},
           {"training_seconds", r.training_seconds},
           {"steps", r.step.value},
           {"samples_total", r.samples_total},
           {"samples_trained", r.totals.once + r.totals.repeated},
           {"delivery", to_string(r.delivery)},
           {"samples_repeated", r.totals.repeated},
           {"samples_lost", r.totals.lost},
           {"samples_skipped", r.totals.skipped},
           {"samples_unaccounted", r.totals.unaccounted},
           {"samples_per_second", r.samples_per_second},
           {"generations", r.generation.value},
           {"lineages", r.lineage.value},
           {"failures", failures_json(r.failures)},
           {"incarnations", r.incarnation.value},
           {"epochs", json::array()},
           {"actions", actions_json(r.actions)},
           {"workers", json::array()},
           {"checkpoints", r.checkpoints}};
  for (const EpochReport& e : r.epoch_reports) {
    json epoch{{"train_loss", e.train_loss}, {"samples", e.samples}, {"seconds", e.seconds}};
    epoch["eval"] = e.eval ? eval_json(*e.eval) : json(nullptr);
    out["epochs"].push_back(std::move(epoch));
  }
  const Outcome outcome = r.outcome.value_or(Outcome{});
  out["exit"] = {{"code", outcome.code},
                 {"class", outcome.exit_class},
                 {"resumable", outcome.resumable},
                 {"first_cause", outcome.first_cause}};
  wire::TimeAccount total;
  for (const WorkerReport& w : r.workers) {
    total += w.time;
    json worker{{"id", to_string(w.worker)},
                {"host", w.host},
                {"pid", w.pid},
                {"attempt", w.attempt.value},
                {"samples", w.samples},
                {"wall_seconds", w.wall_seconds},
                {"lost_time", time_json(w.time)},
                {"device", device_json(w.device)}};
    worker["rank"] = w.rank ? json(*w.rank) : json(nullptr);
    out["workers"].push_back(std::move(worker));
  }
  out["lost_time"] = time_json(total);
  add_servers(out, r.servers);
  return text_of(out, 2) + "\n";
}

}  // namespace antdt::ctl
