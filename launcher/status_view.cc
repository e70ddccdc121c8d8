#include "launcher/status_view.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "launcher/text_table.h"

namespace antdt::launcher {

namespace {

using nlohmann::json;

// Fields of an object; what is missing or of another type leaves the default.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}
  void read(const char* name, std::string& out) const {
    if (const json* v = find(name); v != nullptr && v->is_string()) out = v->get<std::string>();
  }
  void read(const char* name, double& out) const {
    if (const json* v = find(name); v != nullptr && v->is_number()) out = v->get<double>();
  }
  void read(const char* name, std::uint64_t& out) const {
    if (const json* v = find(name); v != nullptr && v->is_number_unsigned()) {
      out = v->get<std::uint64_t>();
    }
  }
  void read(const char* name, bool& out) const {
    if (const json* v = find(name); v != nullptr && v->is_boolean()) out = v->get<bool>();
  }
  void read(const char* name, std::optional<double>& out) const {
    if (const json* v = find(name); v != nullptr && v->is_number()) out = v->get<double>();
  }
  [[nodiscard]] const json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

 private:
  const json& object_;
};

std::string io_of(const Fields& process) {
  std::string text;
  const json* io = process.find("io");
  if (io != nullptr && io->is_object()) Fields(*io).read("text", text);
  return text;
}

WorkerStatus parse_worker(const json& object) {
  WorkerStatus worker;
  const Fields fields(object);
  fields.read("id", worker.id);
  if (const json* rank = fields.find("rank"); rank != nullptr && rank->is_number_unsigned()) {
    worker.rank = rank->get<std::uint32_t>();
  }
  fields.read("host", worker.host);
  fields.read("pid", worker.pid);
  fields.read("attempt", worker.attempt);
  fields.read("state", worker.state);
  fields.read("batch", worker.batch);
  fields.read("samples_per_second", worker.samples_per_second);
  fields.read("verdict", worker.verdict);
  if (const json* straggler = fields.find("straggler");
      straggler != nullptr && straggler->is_object()) {
    worker.straggler = true;
    Fields(*straggler).read("seen", worker.seen);
  }
  fields.read("tried_again_in_s", worker.tried_again_in_s);
  worker.io = io_of(fields);
  return worker;
}

ServerStatus parse_server(const json& object) {
  ServerStatus server;
  const Fields fields(object);
  fields.read("id", server.id);
  fields.read("host", server.host);
  fields.read("pid", server.pid);
  fields.read("attempt", server.attempt);
  fields.read("state", server.state);
  fields.read("rows", server.rows);
  fields.read("bytes", server.bytes);
  fields.read("requests", server.requests);
  fields.read("service_us_p50", server.service_us_p50);
  fields.read("service_us_p99", server.service_us_p99);
  fields.read("role", server.role);
  fields.read("verdict", server.verdict);
  server.io = io_of(fields);
  return server;
}

FailureView parse_failure(const json& object) {
  FailureView failure;
  const Fields fields(object);
  fields.read("time_s", failure.time_s);
  fields.read("worker", failure.worker);
  fields.read("host", failure.host);
  fields.read("class", failure.cls);
  fields.read("cause", failure.cause);
  fields.read("first", failure.first);
  fields.read("recovered_in_s", failure.recovered_in_s);
  return failure;
}

HostView parse_host(const json& object) {
  HostView host;
  const Fields fields(object);
  fields.read("name", host.name);
  fields.read("room", host.room);
  fields.read("up", host.up);
  fields.read("closed", host.closed);
  fields.read("probation", host.probation);
  return host;
}

ActionView parse_action(const json& object) {
  ActionView action;
  const Fields fields(object);
  fields.read("number", action.number);
  fields.read("time_s", action.time_s);
  fields.read("kind", action.kind);
  fields.read("target", action.target);
  fields.read("reason", action.reason);
  fields.read("outcome", action.outcome);
  return action;
}

// What `parse` makes of each object in the list of this name.
template <class T>
void read_list(const Fields& fields, const char* name, T (*parse)(const json&),
               std::vector<T>& out) {
  const json* list = fields.find(name);
  if (list == nullptr || !list->is_array()) return;
  for (const json& object : *list) {
    if (object.is_object()) out.push_back(parse(object));
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string rate(double samples_per_second) {
  if (samples_per_second <= 0) return "-";
  return grouped(static_cast<std::uint64_t>(std::min(samples_per_second, 1e15) + 0.5));
}

std::string eval_text(const std::map<std::string, double>& eval) {
  std::string text;
  const std::pair<const char*, const char*> names[] = {
      {"auc", "AUC"}, {"log_loss", "log loss"}, {"accuracy", "accuracy"}};
  for (const auto& [key, name] : names) {
    const auto it = eval.find(key);
    if (it == eval.end()) continue;
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, it->second);
  }
  return text;
}

}  // namespace

Result<StatusView> parse_status(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::kCorrupt, "a status that is no JSON object");
  StatusView status;
  const Fields fields(object);
  fields.read("job", status.job);
  fields.read("state", status.state);
  fields.read("generation", status.generation);
  fields.read("incarnation", status.incarnation);
  fields.read("epoch", status.epoch);
  fields.read("epochs", status.epochs);
  fields.read("samples_done", status.samples_done);
  fields.read("samples_total", status.samples_total);
  fields.read("samples_per_second", status.samples_per_second);
  fields.read("train_loss", status.train_loss);
  fields.read("eta_seconds", status.eta_seconds);
  fields.read("message", status.message);
  if (const json* eval = fields.find("last_eval"); eval != nullptr && eval->is_object()) {
    for (const auto& [name, value] : eval->items()) {
      if (value.is_number()) status.last_eval[name] = value.get<double>();
    }
  }
  fields.read("lineage", status.lineage);
  fields.read("waiting_for", status.waiting_for);
  fields.read("solution_trouble", status.solution_trouble);
  fields.read("disk_trouble", status.disk_trouble);
  read_list(fields, "workers", parse_worker, status.workers);
  read_list(fields, "servers", parse_server, status.servers);
  fields.read("servers_count", status.servers_count);
  fields.read("servers_wanted", status.servers_wanted);
  read_list(fields, "failures", parse_failure, status.failures);
  read_list(fields, "hosts", parse_host, status.hosts);
  read_list(fields, "actions", parse_action, status.actions);
  if (const json* budgets = fields.find("budgets"); budgets != nullptr && budgets->is_object()) {
    for (const auto& [cls, budget] : budgets->items()) {
      const Fields of_class(budget);
      of_class.read("limit", status.budgets[cls].limit);
      of_class.read("left", status.budgets[cls].left);
    }
  }
  return status;
}

bool WorkerStatus::running() const {
  return state != "exited" && state != "waiting" && state != "removed";
}

Result<EventView> parse_event(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::kCorrupt, "an event that is no JSON object");
  EventView event;
  const Fields fields(object);
  fields.read("time_s", event.time_s);
  fields.read("kind", event.kind);
  fields.read("text", event.text);
  return event;
}

std::string progress_line(const StatusView& s) {
  std::string line;
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : "  ") + part; };
  if (s.epochs > 0) add(fmt::format("epoch {}/{}", std::min(s.epoch + 1, s.epochs), s.epochs));
  add(s.state);
  if (s.samples_total > 0) {
    const double share = static_cast<double>(s.samples_done) / static_cast<double>(s.samples_total);
    add(fmt::format("{:.0f}%", 100 * std::min(share, 1.0)));
  }
  if (s.samples_per_second > 0) add(rate(s.samples_per_second) + " samples/s");
  if (s.eta_seconds) add("ETA " + clock_text(*s.eta_seconds));
  if (s.train_loss) add(fmt::format("loss {:.4f}", *s.train_loss));
  if (const std::string eval = eval_text(s.last_eval); !eval.empty()) add("(" + eval + ")");
  return line;
}

std::vector<std::string> io_lines(const StatusView& s) {
  std::vector<std::string> lines;
  const auto add = [&](const auto& process) {
    if (process.io.empty()) return;
    lines.push_back(fmt::format("{} on {}: {}", process.id, process.host, process.io));
  };
  std::ranges::for_each(s.workers, add);
  std::ranges::for_each(s.servers, add);
  return lines;
}

std::vector<std::string> worker_table(const StatusView& s, const std::vector<EventView>& events) {
  std::vector<std::vector<std::string>> rows;
  for (const WorkerStatus& w : s.workers) {
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
  if (events.empty()) {
    header.pop_back();
    for (auto& row : rows) row.pop_back();
  }
  return text_table(header, rows);
}

std::vector<std::string> server_table(const StatusView& s) {
  if (s.servers.empty()) return {};
  const bool roles = std::ranges::any_of(s.servers, [](const auto& v) { return !v.role.empty(); });
  std::vector<std::vector<std::string>> rows;
  for (const ServerStatus& server : s.servers) {
    const double mib = static_cast<double>(server.bytes) / (1 << 20);
    rows.push_back({server.id, server.host, server.pid > 0 ? std::to_string(server.pid) : "-",
                    std::to_string(server.attempt), server.state, grouped(server.rows),
                    fmt::format("{:.1f}", mib), grouped(server.requests),
                    fmt::format("{:.0f}", server.service_us_p50),
                    fmt::format("{:.0f}", server.service_us_p99), server.verdict});
    if (roles) rows.back().push_back(server.role);
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
  // What comes often and is seen in the progress anyway.
  constexpr std::string_view kQuiet[] = {"checkpoint", "host", "phase", "start", "worker-started"};
  return std::ranges::find(kQuiet, event.kind) == std::end(kQuiet);
}

std::vector<std::string> live_block(const StatusView& s, const std::vector<EventView>& events,
                                    std::size_t width) {
  std::vector<std::string> lines = {progress_line(s)};
  if (!s.message.empty()) lines.push_back(s.message);
  if (!s.waiting_for.empty()) lines.push_back("waiting for " + s.waiting_for);
  if (!s.solution_trouble.empty()) lines.push_back("nobody decides: " + s.solution_trouble);
  if (!s.disk_trouble.empty()) lines.push_back(s.disk_trouble);
  std::ranges::move(io_lines(s), std::back_inserter(lines));
  if (!s.workers.empty()) {
    const auto table = worker_table(s, {});
    lines.insert(lines.end(), table.begin(), table.end());
  }
  const auto servers = server_table(s);
  lines.insert(lines.end(), servers.begin(), servers.end());
  for (const EventView& event : events) lines.push_back(event_line(event));
  for (std::string& line : lines) {
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    line = cut(line, width);
  }
  return lines;
}

namespace {

// Of a host's room, where workers ask for no resources.
constexpr std::uint64_t kAnyNumber = 1'000'000;

void add_hosts(const StatusView& s, std::vector<std::string>& lines) {
  std::string text;
  for (const HostView& host : s.hosts) {
    std::string how = host.closed               ? "evicted, takes no workers"
                      : !host.up                ? "not reached"
                      : host.probation          ? "failed often lately, avoided"
                      : host.room >= kAnyNumber ? "there"
                                                : fmt::format("room for {}", host.room);
    text += fmt::format("{}{} ({})", text.empty() ? "hosts: " : ", ", host.name, how);
  }
  const bool usual = s.hosts.size() <= 1 && std::ranges::all_of(s.hosts, [](const HostView& h) {
                       return h.up && !h.closed && !h.probation;
                     });
  if (!usual) lines.push_back(text);
}

void add_failures(const StatusView& s, std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 5;
  if (s.failures.empty()) return;
  const std::size_t from = s.failures.size() - std::min(s.failures.size(), kShown);
  lines.push_back(from == 0 ? fmt::format("failures: {}", s.failures.size())
                            : fmt::format("failures: {}, the last {}:", s.failures.size(), kShown));
  for (std::size_t i = from; i < s.failures.size(); ++i) {
    lines.push_back(failure_line(s.failures[i]));
  }
}

}  // namespace

std::string failure_line(const FailureView& f) {
  std::string line = fmt::format("{:>9}  {} on {}, {}: {}", fmt::format("{:.1f}s", f.time_s),
                                 f.worker, f.host, f.cls, first_line(f.cause));
  if (!f.first) line += "; a consequence";
  if (f.recovered_in_s) line += fmt::format("; went on after {:.1f}s", *f.recovered_in_s);
  return line;
}

const EventView* last_event(const std::vector<EventView>& events, const std::string& worker) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    for (std::size_t at = event->text.find(worker); at != std::string::npos;
         at = event->text.find(worker, at + 1)) {
      const std::size_t end = at + worker.size();  // not w1 of w12
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
  json object = json::parse(status_json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("workers")) return status_json;
  for (json& worker : object["workers"]) {
    const EventView* event = last_event(events, worker.value("id", std::string()));
    worker["last_event"] =
        event == nullptr
            ? json(nullptr)
            : json{{"time_s", event->time_s}, {"kind", event->kind}, {"text", event->text}};
  }
  return object.dump();
}

std::vector<std::string> status_table(const StatusView& s, const std::vector<EventView>& events) {
  std::vector<std::string> lines = {
      fmt::format("{}: {}", s.job, progress_line(s)),
      fmt::format("generation {}, lineage {}, incarnation {}, {} of {} samples", s.generation,
                  s.lineage, s.incarnation, grouped(s.samples_done), grouped(s.samples_total))};
  if (!s.message.empty()) lines.push_back(s.message);
  if (!s.waiting_for.empty()) lines.push_back("waiting for " + s.waiting_for);
  if (!s.solution_trouble.empty()) lines.push_back("nobody decides: " + s.solution_trouble);
  if (!s.disk_trouble.empty()) lines.push_back(s.disk_trouble);
  std::ranges::move(io_lines(s), std::back_inserter(lines));
  const auto table = worker_table(s, events);
  lines.insert(lines.end(), table.begin(), table.end());
  const auto servers = server_table(s);
  lines.insert(lines.end(), servers.begin(), servers.end());
  add_hosts(s, lines);
  add_failures(s, lines);
  return lines;
}

}  // namespace antdt::launcher
