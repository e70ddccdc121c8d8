#include "ctl/job/metrics/worker_metrics.h"

#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "ctl/job/observers/verdict_watch.h"

namespace antdt::ctl {
namespace {

using metrics::Families;
using metrics::Family;
using metrics::Labels;

constexpr double kMicro = 1e-6;

Labels of(const WorkerReport& w) { return {{"worker", to_string(w.worker)}, {"host", w.host}}; }
Labels of(const ServerReport& s) { return {{"server", to_string(s.server)}, {"host", s.host}}; }
Labels with(Labels labels, const char* name, std::string_view value) {
  labels.emplace_back(name, value);
  return labels;
}

constexpr std::array<std::pair<std::string_view, double wire::TimeAccount::*>, 8> kParts{
    std::pair{"compute", &wire::TimeAccount::compute},
    std::pair{"data", &wire::TimeAccount::data},
    std::pair{"collective_wait", &wire::TimeAccount::collective_wait},
    std::pair{"shard_wait", &wire::TimeAccount::shard_wait},
    std::pair{"reconfigure", &wire::TimeAccount::reconfigure},
    std::pair{"checkpoint", &wire::TimeAccount::checkpoint},
    std::pair{"startup", &wire::TimeAccount::startup},
    std::pair{"other", &wire::TimeAccount::other}};

// One sample of each worker of which `value` has one.
template <class Value>
void each(const JobReport& r, Family& family, Value&& value) {
  for (const WorkerReport& w : r.workers) {
    if (w.state != ProcessState::kRemoved) value(w, family);
  }
}

void add_verdicts(const JobReport& r, Families& out) {
  each(r, out.gauge("antdt_worker_straggler", "1 if the worker makes the others wait, else 0."),
       [](const WorkerReport& w, Family& f) {
         if (w.judged) f.add(is_straggler(w.verdict) ? 1 : 0, of(w));
       });
  each(r,
       out.gauge("antdt_worker_slowdown_ratio",
                 "Median speed of the other workers over the worker's own: 3 is three times "
                 "slower, 0.5 twice as fast."),
       [](const WorkerReport& w, Family& f) {
         if (w.judged) f.add(w.verdict.severity, of(w));
       });
  each(r,
       out.gauge("antdt_worker_verdict",
                 "1, with the present verdict on the worker and the cause as labels."),
       [](const WorkerReport& w, Family& f) {
         if (!w.judged) return;
         Labels labels = with(of(w), "verdict", to_string(w.verdict.kind));
         labels.emplace_back("cause", is_straggler(w.verdict) ? to_string(w.verdict.cause) : "");
         f.add(1, std::move(labels));
       });
}

}  // namespace

void add_worker_metrics(const JobReport& r, Families& out) {
  each(r,
       out.gauge(
           "antdt_worker_info",
           "1, with the worker's rank (empty: in no group), state and device class as labels."),
       [](const WorkerReport& w, Family& f) {
         Labels labels = with(of(w), "rank", w.rank ? std::to_string(*w.rank) : "");
         labels.emplace_back("state", name_of(w.state));
         labels.emplace_back("device", w.device.name);
         f.add(1, std::move(labels));
       });
  each(r, out.gauge("antdt_worker_joined", "1 if the worker takes part in the training, else 0."),
       [](const WorkerReport& w, Family& f) {
         f.add(w.state == ProcessState::kJoined ? 1 : 0, of(w));
       });
  each(r, out.gauge("antdt_worker_attempt", "How often the worker was started."),
       [](const WorkerReport& w, Family& f) { f.add(w.attempt.value, of(w)); });
  each(
      r,
      out.gauge("antdt_worker_samples_per_second",
                "Speed of the worker's own work (data and computing), without waiting for others."),
      [](const WorkerReport& w, Family& f) {
        if (w.judged) f.add(w.samples_per_second, of(w));
      });
  each(r,
       out.gauge("antdt_worker_batch_samples", "Samples of each step that are the worker's share."),
       [](const WorkerReport& w, Family& f) { f.add(w.batch, of(w)); });
  each(r,
       out.counter("antdt_worker_samples_total",
                   "Samples that the worker trained, in all attempts."),
       [](const WorkerReport& w, Family& f) { f.add(static_cast<double>(w.samples), of(w)); });
  each(r,
       out.counter("antdt_worker_time_seconds_total",
                   "How the worker's time was spent, in all attempts, by part."),
       [](const WorkerReport& w, Family& f) {
         for (const auto& [part, member] : kParts) f.add(w.time.*member, with(of(w), "part", part));
       });
  add_verdicts(r, out);
}

void add_server_metrics(const JobReport& r, Families& out) {
  if (r.servers.empty()) return;
  const auto gauge = [&](const char* name, const char* help, auto&& value) {
    Family& family = out.gauge(name, help);
    for (const ServerReport& s : r.servers) family.add(static_cast<double>(value(s)), of(s));
  };
  gauge("antdt_server_joined", "1 if the server serves, else 0.",
        [](const ServerReport& s) { return s.state == ProcessState::kJoined ? 1 : 0; });
  gauge("antdt_server_rows", "Rows of the model that the server holds.",
        [](const ServerReport& s) { return s.said.rows; });
  gauge("antdt_server_memory_bytes", "Memory that those rows use.",
        [](const ServerReport& s) { return s.said.bytes; });
  gauge("antdt_server_median_service_seconds", "Median time in which the server served a request.",
        [](const ServerReport& s) { return kMicro * s.said.service_us_p50; });
  gauge("antdt_server_p99_service_seconds", "99th percentile of the same.",
        [](const ServerReport& s) { return kMicro * s.said.service_us_p99; });
  gauge("antdt_server_straggler", "1 if the server makes the workers wait, else 0.",
        [](const ServerReport& s) { return s.judged && is_straggler(s.verdict) ? 1 : 0; });
  Family& requests =
      out.counter("antdt_server_requests_total", "Requests that the server answered.");
  Family& pushes = out.counter("antdt_server_pushes_total",
                               "Pushes that the server decided on, by what became of them.");
  for (const ServerReport& s : r.servers) {
    requests.add(static_cast<double>(s.said.requests), of(s));
    pushes.add(static_cast<double>(s.said.pushes_applied), with(of(s), "outcome", "applied"));
    pushes.add(static_cast<double>(s.said.pushes_late), with(of(s), "outcome", "late"));
    pushes.add(static_cast<double>(s.said.pushes_repeated), with(of(s), "outcome", "repeated"));
  }
}

}  // namespace antdt::ctl
