#include "bench/stragglers/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/action_outcome.h"
#include "launcher/view/summary_view.h"
#include "launcher/view/text_table.h"

namespace antdt::stragglers {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t applied(const report::Summary& summary) {
  return static_cast<std::uint64_t>(std::ranges::count(
      summary.actions, name_of(ActionOutcome::kApplied), &report::Action::outcome));
}

// "0.912", or with several runs "0.912 (0.905-0.914)".
std::string shares(const Line& line) {
  const auto share = [](const Measured& m) {
    return fmt::format("{:.3f}", m.line.share_of_ideal());
  };
  std::string text = share(line.middle());
  if (line.runs.size() > 1) {
    text += fmt::format(" ({}-{})", share(line.runs.front()), share(line.runs.back()));
  }
  return text;
}

Json line_json(const Line& l) {
  Json out = {{"situation", l.situation}, {"solution", l.solution}, {"workers", l.workers}};
  for (const char* key : {"job_seconds", "ideal_seconds", "share_of_ideal", "speedup_over_none",
                          "actions", "records_repeated", "records_lost"}) {
    out[key] = nullptr;
  }
  if (!l.not_run.empty()) out["not_run"] = l.not_run;
  if (l.runs.empty()) return out;
  const fleet::Comparison& c = l.middle().line;
  out["job_seconds"] = c.job_seconds;
  out["ideal_seconds"] = c.ideal_seconds;
  out["share_of_ideal"] = c.share_of_ideal();
  if (l.speedup_over_none) out["speedup_over_none"] = *l.speedup_over_none;
  out["actions"] = c.actions;
  out["records_repeated"] = c.records_repeated;
  out["records_lost"] = c.records_lost;
  out["runs"] = l.runs.size();
  out["least_share_of_ideal"] = l.runs.front().line.share_of_ideal();
  out["most_share_of_ideal"] = l.runs.back().line.share_of_ideal();
  return out;
}

}  // namespace

Result<Measured> measured(const Cell& cell, const fleet::Speeds& speeds,
                          const std::string& summary_json) {
  ANTDT_TRY(const report::Summary summary, launcher::parse_summary(summary_json));
  Measured m;
  fleet::Comparison& line = m.line;
  line.situation = cell.situation.name;
  line.solution = cell.solution;
  line.workers = cell.situation.workers;
  line.job_seconds = summary.training_seconds;
  line.actions = applied(summary);
  line.records_repeated = summary.samples_repeated;
  line.records_lost = summary.samples_lost;
  fleet::Work work = work_of(cell.situation);
  // Records that were trained twice do not add to the ideal time.
  work.samples = static_cast<double>(summary.samples_total);
  line.ideal_seconds = fleet::ideal_seconds(speeds, work);
  return m;
}

Line line_of(const Cell& cell, std::vector<Measured> runs, const std::string& failure) {
  std::ranges::sort(runs, {}, [](const Measured& m) { return m.line.share_of_ideal(); });
  Line line;
  line.situation = cell.situation.name;
  line.solution = cell.solution;
  line.what = cell.situation.what;
  line.workers = cell.situation.workers;
  line.not_run = cell.not_run.empty() ? failure : cell.not_run;
  line.runs = std::move(runs);
  return line;
}

void compare_with_none(std::vector<Line>& lines) {
  std::map<std::string, double> none;
  for (const Line& line : lines) {
    if (line.solution == "none" && !line.runs.empty()) {
      none[line.situation] = line.middle().line.share_of_ideal();
    }
  }
  for (Line& line : lines) {
    const auto base = none.find(line.situation);
    if (line.runs.empty() || base == none.end() || base->second <= 0) continue;
    line.speedup_over_none = line.middle().line.share_of_ideal() / base->second;
  }
}

std::vector<std::string> table(const std::vector<Line>& lines) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
  for (const Line& l : lines) {
    if (!l.not_run.empty()) {
      notes.push_back(fmt::format("not run: {}, {}: {}", l.situation, l.solution, l.not_run));
    }
    if (l.runs.empty()) continue;
    const fleet::Comparison& c = l.middle().line;
    rows.push_back({l.situation, l.solution, launcher::grouped(l.workers),
                    fmt::format("{:.1f}", c.job_seconds), fmt::format("{:.1f}", c.ideal_seconds),
                    shares(l),
                    l.speedup_over_none ? fmt::format("{:.2f}", *l.speedup_over_none) : "-",
                    launcher::grouped(c.actions), launcher::grouped(c.records_repeated),
                    launcher::grouped(c.records_lost)});
  }
  auto out = launcher::text_table({"situation", "solution", "workers#", "job s#", "ideal s#",
                                   "of ideal#", "over none#", "actions#", "repeated#", "lost#"},
                                  rows);
  out.insert(out.end(), notes.begin(), notes.end());
  return out;
}

std::string to_json(const std::vector<Line>& lines) {
  Json list = Json::array();
  for (const Line& line : lines) list.push_back(line_json(line));
  return list.dump(2);
}

}  // namespace antdt::stragglers
