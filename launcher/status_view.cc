#include "launcher/status_view.h"

#include <algorithm>
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
  return worker;
}

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
  if (const json* workers = fields.find("workers"); workers != nullptr && workers->is_array()) {
    for (const json& worker : *workers) {
      if (worker.is_object()) status.workers.push_back(parse_worker(worker));
    }
  }
  return status;
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

std::vector<std::string> worker_table(const StatusView& s) {
  std::vector<std::vector<std::string>> rows;
  for (const WorkerStatus& w : s.workers) {
    rows.push_back({w.id, w.rank ? std::to_string(*w.rank) : "-", w.host,
                    w.pid > 0 ? std::to_string(w.pid) : "-", std::to_string(w.attempt), w.state,
                    std::to_string(w.batch), rate(w.samples_per_second), w.verdict});
  }
  return text_table(
      {"worker", "rank#", "host", "pid#", "attempt#", "state", "batch#", "samples/s#", "verdict"},
      rows);
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
  if (!s.workers.empty()) {
    const auto table = worker_table(s);
    lines.insert(lines.end(), table.begin(), table.end());
  }
  for (const EventView& event : events) lines.push_back(event_line(event));
  for (std::string& line : lines) {
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    line = cut(line, width);
  }
  return lines;
}

std::vector<std::string> status_table(const StatusView& s) {
  std::vector<std::string> lines = {
      fmt::format("{}: {}", s.job, progress_line(s)),
      fmt::format("generation {}, incarnation {}, {} of {} samples", s.generation, s.incarnation,
                  grouped(s.samples_done), grouped(s.samples_total))};
  if (!s.message.empty()) lines.push_back(s.message);
  const auto table = worker_table(s);
  lines.insert(lines.end(), table.begin(), table.end());
  return lines;
}

}  // namespace antdt::launcher
