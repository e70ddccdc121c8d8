#include "launcher/view/status_view.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/report/json.h"
#include "core/report/states.h"
#include "launcher/view/device_lines.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher {

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string rate(double samples_per_second) {
  if (samples_per_second <= 0) return "-";
  return grouped(static_cast<std::uint64_t>(std::min(samples_per_second, 1e15) + 0.5));
}

std::string eval_text(const report::Evaluation& eval) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, *value);
  };
  add("AUC", eval.auc);
  add("log loss", eval.log_loss);
  add("accuracy", eval.accuracy);
  for (const auto& [name, sum] : eval.sums) {
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", name,
                        sum / static_cast<double>(eval.records));
  }
  return text;
}

}  // namespace

Result<report::Status> parse_status(const std::string& text) {
  auto status = report::from_json<report::Status>(text);
  if (!status) {
    return fail(ErrorKind::kCorrupt,
                "the status cannot be read: {}; is the job daemon of another version?",
                status.error().message);
  }
  return status;
}

std::string told_verdict(const report::WorkerStatus& w) {
  const bool seen = w.straggler && !w.straggler->seen.empty();
  return seen ? w.verdict + ": " + w.straggler->seen : w.verdict;
}

bool is_running(const report::WorkerStatus& w) {
  const std::optional<ProcessState> state = report::state_of(w);
  return state != ProcessState::kExited && state != ProcessState::kWaiting &&
         state != ProcessState::kRemoved;
}

Result<EventView> parse_event(const std::string& text) {
  auto event = report::from_json<EventView>(text);
  if (!event) {
    return fail(ErrorKind::kCorrupt, "an event cannot be read: {}", event.error().message);
  }
  return event;
}

std::vector<std::string> awaited_hosts(const report::Status& s) {
  const auto waits = [](const auto& process) {
    return state_of(process) == ProcessState::kWaiting;
  };
  std::vector<std::string> names;
  if (!std::ranges::any_of(s.workers, waits) && !std::ranges::any_of(s.servers, waits))
    return names;
  for (const report::Host& host : s.hosts) {
    if (!host.up && !host.closed) names.push_back(host.name);
  }
  return names;
}

std::string progress_line(const report::Status& s) {
  std::string line;
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : "  ") + part; };
  if (s.epochs > 0) add(fmt::format("epoch {}/{}", std::min(s.epoch + 1, s.epochs), s.epochs));
  add(s.paused ? "paused" : s.state);
  if (s.samples_total > 0) {
    const double share = static_cast<double>(s.samples_done) / static_cast<double>(s.samples_total);
    add(fmt::format("{:.0f}%", 100 * std::min(share, 1.0)));
  }
  if (s.samples_per_second > 0) add(rate(s.samples_per_second) + " samples/s");
  if (s.traced) {
    add(fmt::format("step {}  {:.3g} steps/s", grouped(s.step), s.traced->steps_per_second));
    if (!s.traced->samples_known && s.step > 0) add("samples unknown");
  }
  if (s.eta_seconds) add("ETA " + clock_text(*s.eta_seconds));
  if (s.train_loss) add(fmt::format("loss {:.4f}", *s.train_loss));
  if (s.last_eval) {
    if (const std::string eval = eval_text(*s.last_eval); !eval.empty()) add("(" + eval + ")");
  }
  if (const auto hosts = awaited_hosts(s); !hosts.empty()) {
    add(fmt::format("no answer from {}: is antdtd running there?", fmt::join(hosts, ", ")));
  }
  return line;
}

std::string paused_line(const report::Status& s) { return "paused: " + s.disk_trouble; }

std::vector<std::string> io_lines(const report::Status& s) {
  std::vector<std::string> lines;
  const auto add = [&](const auto& process) {
    if (!process.io) return;
    lines.push_back(fmt::format("{} on {}: {}", process.id, process.host, process.io->text));
  };
  std::ranges::for_each(s.workers, add);
  std::ranges::for_each(s.servers, add);
  return lines;
}

// For a traced script: what its ranks wait for, and what cannot be determined.
std::vector<std::string> traced_lines(const report::Status& s) {
  std::vector<std::string> lines;
  if (s.hang && !s.hang->over) lines.push_back("hang: " + s.hang->text);
  return lines;
}

std::vector<std::string> worker_table(const report::Status& s,
                                      const std::vector<EventView>& events) {
  std::vector<std::vector<std::string>> rows;
  for (const report::WorkerStatus& w : s.workers) {
    const EventView* event = last_event(events, w.id);
    rows.push_back({w.id, w.rank ? std::to_string(*w.rank) : "-", w.host,
                    w.pid > 0 ? std::to_string(w.pid) : "-", std::to_string(w.attempt), w.state,
                    std::to_string(w.batch), rate(w.samples_per_second), w.verdict,
                    event == nullptr ? ""
                                     : fmt::format("{} {}", clock_text(event->time_s),
                                                   first_line(event->text))});
  }
  std::vector<std::string> header = {"worker", "rank#",  "host",       "pid#",    "attempt#",
                                     "state",  "batch#", "samples/s#", "verdict", "last event"};
  const bool traced =
      std::ranges::any_of(s.workers, [](const auto& w) { return w.step_time.has_value(); });
  if (traced) {
    // Shown instead of the batch, because no plan sets one here.
    const auto ms = [](double value) { return fmt::format("{:.3g}", value); };
    const std::size_t at = 6;
    header.erase(header.begin() + at);
    header.insert(header.begin() + at, {"data ms#", "compute ms#", "wait ms#"});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const report::StepTime t = s.workers[i].step_time.value_or(report::StepTime{});
      rows[i].erase(rows[i].begin() + at);
      rows[i].insert(rows[i].begin() + at, {ms(t.data_ms), ms(t.compute_ms), ms(t.wait_ms)});
    }
  }
  if (events.empty()) {
    header.pop_back();
    for (auto& row : rows) row.pop_back();
  }
  return text_table(header, rows);
}

std::vector<std::string> server_table(const std::vector<report::ServerStatus>& servers) {
  if (servers.empty()) return {};
  const bool roles = std::ranges::any_of(servers, [](const auto& v) { return v.role.has_value(); });
  std::vector<std::vector<std::string>> rows;
  for (const report::ServerStatus& server : servers) {
    const double mib = static_cast<double>(server.bytes) / (1 << 20);
    rows.push_back({server.id, server.host, server.pid > 0 ? std::to_string(server.pid) : "-",
                    std::to_string(server.attempt), server.state, grouped(server.rows),
                    fmt::format("{:.1f}", mib), grouped(server.requests),
                    fmt::format("{:.0f}", server.service_us_p50),
                    fmt::format("{:.0f}", server.service_us_p99), server.verdict});
    if (roles) rows.back().push_back(server.role.value_or(""));
  }
  std::vector<std::string> header = {"server",  "host",    "pid#",   "attempt#",
                                     "state",   "rows#",   "MiB#",   "requests#",
                                     "p50 us#", "p99 us#", "verdict"};
  if (roles) header.emplace_back("role");
  return text_table(header, rows);
}

std::string event_line(const EventView& event) {
  return fmt::format("{:>9}  {}: {}", fmt::format("{:.1f}s", event.time_s), event.kind, event.text);
}

bool is_notable(const EventView& event) {
  // Events that are frequent and visible in the progress anyway.
  constexpr std::string_view kQuiet[] = {"checkpoint", "host", "phase", "start", "worker-started"};
  return std::ranges::find(kQuiet, event.kind) == std::end(kQuiet);
}

std::string link_line(const std::optional<report::Traffic>& traffic) {
  if (!traffic) return {};
  const bool by_domain = !traffic->domains.empty();
  const report::TrafficBetween* worst = nullptr;
  for (const report::TrafficBetween& t : by_domain ? traffic->domains : traffic->hosts) {
    if (by_domain ? t.from_domain == t.to_domain : t.from == t.to) continue;
    if (worst == nullptr || t.waited_seconds > worst->waited_seconds) worst = &t;
  }
  if (worst == nullptr) return {};
  const auto place = [&](const std::string& host, const std::string& domain) {
    if (!by_domain) return "on " + (host.empty() ? "further hosts" : host);
    return domain.empty() ? std::string("in no domain") : "in " + domain;
  };
  return fmt::format(
      "longest wait between {}: workers {} waited {} for workers {}, from which {} "
      "MB came",
      by_domain ? "domains" : "hosts", place(worst->from, worst->from_domain),
      clock_text(worst->waited_seconds), place(worst->to, worst->to_domain),
      grouped(worst->received_bytes / 1'000'000));
}

std::string threshold_line(const std::optional<report::UpdateThreshold>& threshold) {
  if (!threshold || (threshold->in_force == threshold->of_job && !threshold->visit)) return {};
  std::string line =
      fmt::format("threshold of updates between domains: {:.4g}", threshold->in_force);
  if (threshold->in_force != threshold->of_job) {
    line += fmt::format(" ({:.4g} in job.toml)", threshold->of_job);
  }
  if (const auto& visit = threshold->visit) {
    line += fmt::format(
        "; at step {} replicas did {:.1f}% {} in another domain than its own replica, with "
        "{:.1f}% of the bytes",
        grouped(visit->step), 100 * std::abs(visit->accuracy_loss),
        visit->accuracy_loss < 0 ? "better" : "worse", 100 * visit->bytes_share);
  }
  return line;
}

namespace {

// For a table whose last column is cut: the worst verdicts, whole.
std::vector<std::string> verdict_lines(const report::Status& s, std::size_t width) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kLines = 3;  // of each
  std::vector<const report::WorkerStatus*> told;
  for (const report::WorkerStatus& w : s.workers) {
    if (is_running(w) && !w.verdict.empty() && w.verdict != "ok") told.push_back(&w);
  }
  std::ranges::stable_sort(told, std::ranges::greater(), [](const report::WorkerStatus* w) {
    return w->straggler ? w->straggler->severity : 0;
  });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(told.size(), kShown); ++i) {
    const std::string text = fmt::format("{}: {}", told[i]->id, told_verdict(*told[i]));
    std::ranges::move(wrapped(text, width, kLines), std::back_inserter(lines));
  }
  return lines;
}

}  // namespace

std::vector<std::string> live_block(const report::Status& s, const std::vector<EventView>& events,
                                    std::size_t width) {
  std::vector<std::string> lines = {progress_line(s)};
  if (s.paused) lines.push_back(paused_line(s));
  if (!s.collective.empty()) lines.push_back("collective: " + s.collective);
  if (auto line = link_line(s.traffic); !line.empty()) lines.push_back(std::move(line));
  if (auto line = threshold_line(s.update_threshold); !line.empty()) {
    lines.push_back(std::move(line));
  }
  if (!s.message.empty()) lines.push_back(s.message);
  if (!s.waiting_for.empty()) lines.push_back("waiting for " + s.waiting_for);
  if (!s.solution_trouble.empty()) lines.push_back("nobody decides: " + s.solution_trouble);
  if (!s.disk_trouble.empty() && !s.paused) lines.push_back(s.disk_trouble);
  std::ranges::move(io_lines(s), std::back_inserter(lines));
  std::ranges::move(traced_lines(s), std::back_inserter(lines));
  if (!s.workers.empty()) {
    const auto table = worker_table(s, {});
    lines.insert(lines.end(), table.begin(), table.end());
    const bool too_wide = width > 0 && std::ranges::any_of(table, [&](const std::string& line) {
                            return columns_of(line) > width;
                          });
    if (too_wide) std::ranges::move(verdict_lines(s, width), std::back_inserter(lines));
  }
  std::ranges::move(server_table(s.servers), std::back_inserter(lines));
  for (const EventView& event : events) lines.push_back(event_line(event));
  for (std::string& line : lines) {
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    line = cut(line, width);
  }
  return lines;
}

namespace {

// Room of a host if workers request no resources.
constexpr std::uint64_t kAnyNumber = 1'000'000;

void add_hosts(const report::Status& s, std::vector<std::string>& lines) {
  std::string text;
  for (const report::Host& host : s.hosts) {
    std::string how = host.closed               ? "evicted, takes no workers"
                      : !host.up                ? "not reached"
                      : host.drained            ? fmt::format("drained {}", *host.drained)
                      : host.probation          ? "failed often lately, avoided"
                      : host.room >= kAnyNumber ? "there"
                                                : fmt::format("room for {}", host.room);
    text += fmt::format("{}{} ({})", text.empty() ? "hosts: " : ", ", host.name, how);
  }
  const bool usual = s.hosts.size() <= 1 && std::ranges::all_of(s.hosts, [](const report::Host& h) {
                       return h.up && !h.closed && !h.probation && !h.drained;
                     });
  if (!usual) lines.push_back(text);
}

void add_failures(const report::Status& s, std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 5;
  if (s.failures.empty()) return;
  const std::size_t from = s.failures.size() - std::min(s.failures.size(), kShown);
  const std::string all = grouped(in_all(s.failures, s.failures_count));
  lines.push_back(from == 0 ? fmt::format("failures: {}", all)
                            : fmt::format("failures: {}, the last {}:", all, kShown));
  for (std::size_t i = from; i < s.failures.size(); ++i) {
    lines.push_back(failure_line(s.failures[i]));
  }
}

}  // namespace

std::string from_where(const report::Failure& f) {
  if (!f.went_back_to) return {};
  if (*f.went_back_to == 0) return " from the beginning";
  return fmt::format(" from step {}", grouped(*f.went_back_to));
}

std::string failure_line(const report::Failure& f) {
  std::string line = fmt::format("{:>9}  {} on {}, {}: {}", fmt::format("{:.1f}s", f.time_s),
                                 f.worker, f.host, f.cls, first_line(f.cause));
  if (!f.first) line += "; a consequence";
  if (f.recovered_in_s) {
    line += fmt::format("; went on after {:.1f}s{}", *f.recovered_in_s, from_where(f));
  }
  return line;
}

std::string skipped_line(std::vector<report::Skipped> skipped) {
  constexpr std::size_t kShown = 5;
  std::ranges::stable_sort(skipped, std::ranges::greater(), &report::Skipped::samples);
  std::uint64_t all = 0;
  std::string reasons;
  for (std::size_t i = 0; i < skipped.size(); ++i) {
    all += skipped[i].samples;
    if (i >= kShown) continue;
    reasons += fmt::format("{}{} ({})", i == 0 ? "" : ", ", skipped[i].reason,
                           grouped(skipped[i].samples));
  }
  if (skipped.size() > kShown) {
    reasons += fmt::format(", and {} more reasons", skipped.size() - kShown);
  }
  return fmt::format("{} samples skipped by the program, see RUN/skipped-*.jsonl: {}", grouped(all),
                     reasons);
}

const EventView* last_event(const std::vector<EventView>& events, const std::string& worker) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    for (std::size_t at = event->text.find(worker); at != std::string::npos;
         at = event->text.find(worker, at + 1)) {
      const std::size_t end = at + worker.size();  // so that w1 does not match w12
      const bool whole =
          (at == 0 || std::isalnum(static_cast<unsigned char>(event->text[at - 1])) == 0) &&
          (end == event->text.size() ||
           std::isalnum(static_cast<unsigned char>(event->text[end])) == 0);
      if (whole) return &*event;
    }
  }
  return nullptr;
}

std::string with_last_events(const std::string& status_json, const std::vector<EventView>& events) {
  auto object = report::Json::parse(status_json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("workers")) return status_json;
  for (report::Json& worker : object["workers"]) {
    const EventView* event = last_event(events, worker.value("id", std::string()));
    worker["last_event"] = event == nullptr ? report::Json(nullptr) : report::json_of(*event);
  }
  return object.dump();
}

std::vector<std::string> status_table(const report::Status& s,
                                      const std::vector<EventView>& events) {
  std::vector<std::string> lines = {
      fmt::format("{}: {}", s.job, progress_line(s)),
      s.traced
          ? fmt::format("{} ranks traced ({}), {} samples", s.traced->ranks, s.traced->runs,
                        s.traced->samples_known ? grouped(s.samples_done) : "an unknown number of")
          : fmt::format("generation {}, lineage {}, incarnation {}, {} of {} samples", s.generation,
                        s.lineage, s.incarnation, grouped(s.samples_done),
                        grouped(s.samples_total))};
  if (s.paused) lines.insert(lines.begin(), paused_line(s));
  if (!s.message.empty()) lines.push_back(s.message);
  if (!s.waiting_for.empty()) lines.push_back("waiting for " + s.waiting_for);
  if (!s.solution_trouble.empty()) lines.push_back("nobody decides: " + s.solution_trouble);
  if (!s.disk_trouble.empty() && !s.paused) lines.push_back(s.disk_trouble);
  std::ranges::move(io_lines(s), std::back_inserter(lines));
  std::ranges::move(traced_lines(s), std::back_inserter(lines));
  if (!s.skipped_by_program.empty()) lines.push_back(skipped_line(s.skipped_by_program));
  const auto table = worker_table(s, events);
  lines.insert(lines.end(), table.begin(), table.end());
  std::ranges::move(server_table(s.servers), std::back_inserter(lines));
  add_hosts(s, lines);
  std::ranges::move(device_lines(s.hosts), std::back_inserter(lines));
  add_failures(s, lines);
  return lines;
}

}  // namespace antdt::launcher
