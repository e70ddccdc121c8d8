#include "launcher/summary_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "launcher/status_view.h"
#include "launcher/text_table.h"

namespace antdt::launcher {

namespace {

using nlohmann::json;

std::string number(const json& object, const char* name, const char* format) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return "-";
  return fmt::format(fmt::runtime(format), it->get<double>());
}

std::string count(const json& object, const char* name) {
  return grouped(object.value(name, std::uint64_t{0}));
}

void add_speed(const json& summary, std::vector<std::string>& lines) {
  lines.push_back(fmt::format(
      "{}: {} in {}, {} samples/s", summary.value("job", std::string("job")),
      summary.at("state").get<std::string>(), clock_text(summary.value("wall_seconds", 0.0)),
      grouped(static_cast<std::uint64_t>(summary.value("samples_per_second", 0.0) + 0.5))));
}

void add_epochs(const json& summary, std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const json& epoch : summary.value("epochs", json::array())) {
    const json eval =
        epoch.contains("eval") && epoch["eval"].is_object() ? epoch["eval"] : json::object();
    rows.push_back({std::to_string(rows.size() + 1), number(epoch, "train_loss", "{:.4f}"),
                    number(eval, "auc", "{:.4f}"), number(eval, "log_loss", "{:.4f}"),
                    number(eval, "accuracy", "{:.4f}")});
  }
  if (rows.empty()) return;
  const auto table =
      text_table({"epoch#", "train loss#", "eval AUC#", "log loss#", "accuracy#"}, rows);
  lines.insert(lines.end(), table.begin(), table.end());
}

void add_time(const json& summary, std::vector<std::string>& lines) {
  const json causes = summary.value("lost_time", json::object());
  double total = 0;
  for (const auto& [name, seconds] : causes.items()) total += seconds.get<double>();
  if (total <= 0) return;
  std::string text;
  for (const char* name : {"compute", "data", "collective_wait", "shard_wait", "reconfigure",
                           "checkpoint", "startup", "other"}) {
    const double share = 100 * causes.value(name, 0.0) / total;
    std::string label = name;
    std::ranges::replace(label, '_', ' ');
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", label, share);
  }
  lines.push_back("time of all workers: " + text);
}

// Own speed is that of getting data and computing: who waits is not slow.
void add_workers(const json& summary, std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const json& worker : summary.value("workers", json::array())) {
    const json time = worker.value("lost_time", json::object());
    const double own = time.value("compute", 0.0) + time.value("data", 0.0);
    const auto samples = worker.value("samples", std::uint64_t{0});
    if (samples == 0 || own <= 0) continue;
    rows.push_back({worker.value("id", ""), worker.value("host", ""), grouped(samples),
                    grouped(static_cast<std::uint64_t>(static_cast<double>(samples) / own + 0.5)),
                    clock_text(own), clock_text(time.value("collective_wait", 0.0))});
  }
  if (rows.empty()) return;
  const auto table =
      text_table({"worker", "host", "samples#", "own samples/s#", "own time#", "waited#"}, rows);
  lines.insert(lines.end(), table.begin(), table.end());
}

void add_servers(const std::string& text, const json& summary, std::vector<std::string>& lines) {
  const auto status = parse_status(text);
  if (!status || status->servers.empty()) return;
  const auto table = server_table(*status);
  lines.insert(lines.end(), table.begin(), table.end());
  const json pushes = summary.value("pushes", json::object());
  const json staleness = summary.value("staleness", json::object());
  lines.push_back(fmt::format("pushes: {} applied, {} late, {} repeated; staleness {} (most {})",
                              count(pushes, "applied"), count(pushes, "late"),
                              count(pushes, "repeated"), number(staleness, "mean", "{:.1f}"),
                              count(staleness, "max")));
}

void add_actions(const json& summary, std::vector<std::string>& lines) {
  const json actions = summary.value("actions", json::array());
  constexpr std::size_t kShown = 20;
  lines.push_back(fmt::format("actions: {}", actions.empty() ? "none" : grouped(actions.size())));
  for (std::size_t i = 0; i < actions.size() && i < kShown; ++i) {
    const json& action = actions[i];
    const std::string target = action.value("target", "");
    lines.push_back(fmt::format("  {:>8}  {}{}{}: {}", number(action, "time_s", "{:.1f}s"),
                                action.value("kind", ""), target.empty() ? "" : " ", target,
                                action.value("reason", "")));
  }
  if (actions.size() > kShown) {
    lines.push_back(fmt::format("  and {} more, see summary.json", actions.size() - kShown));
  }
}

void add_failures(const std::string& text, std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 20;
  const auto status = parse_status(text);
  if (!status || status->failures.empty()) return;
  lines.push_back(fmt::format("failures: {}", grouped(status->failures.size())));
  for (std::size_t i = 0; i < status->failures.size() && i < kShown; ++i) {
    lines.push_back(failure_line(status->failures[i]));
  }
  if (status->failures.size() > kShown) {
    lines.push_back(
        fmt::format("  and {} more, see summary.json", status->failures.size() - kShown));
  }
}

void add_accounts(const json& summary, std::vector<std::string>& lines) {
  lines.push_back(
      fmt::format("samples: {} of {} trained, {} repeated, {} lost, {} skipped, {} unaccounted",
                  count(summary, "samples_trained"), count(summary, "samples_total"),
                  count(summary, "samples_repeated"), count(summary, "samples_lost"),
                  count(summary, "samples_skipped"), count(summary, "samples_unaccounted")));
}

}  // namespace

Result<Summary> parse_summary(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    Summary summary;
    summary.json = text;
    summary.state = object.at("state").get<std::string>();
    const json& exit = object.at("exit");
    summary.exit_code = exit.at("code").get<int>();
    summary.resumable = exit.value("resumable", false);
    summary.first_cause = exit.value("first_cause", std::string());
    add_speed(object, summary.lines);
    add_epochs(object, summary.lines);
    add_workers(object, summary.lines);
    add_servers(text, object, summary.lines);
    add_time(object, summary.lines);
    add_actions(object, summary.lines);
    add_failures(text, summary.lines);
    add_accounts(object, summary.lines);
    return summary;
  } catch (const json::exception& e) {
    return fail(ErrorKind::kCorrupt, "the summary cannot be read: {}", e.what());
  }
}

Result<Summary> read_summary(const std::string& run_dir) {
  const std::string path = run_dir + "/summary.json";
  ANTDT_TRY(const std::string text, read_file(path));
  auto summary = parse_summary(text);
  if (!summary) return fail(ErrorKind::kCorrupt, "{}: {}", path, summary.error().message);
  return summary;
}

std::vector<std::string> closing_lines(const Summary& summary, const std::string& run_dir) {
  std::vector<std::string> lines;
  if (summary.exit_code == 0) return lines;
  lines.push_back(
      fmt::format("the run is in {}, its workers' output in {}/logs", run_dir, run_dir));
  if (summary.exit_code == 75) {
    lines.push_back(fmt::format("stopped; go on with: antdt run --resume {}", run_dir));
  }
  if (!summary.first_cause.empty()) lines.push_back("first cause: " + summary.first_cause);
  return lines;
}

}  // namespace antdt::launcher
