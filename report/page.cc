#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace antdt::page {
namespace {

constexpr std::size_t kEvents = 200;  // how many events a run's list has

// The colours of lines can be distinguished in both schemes, and by most eyes.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --soft: #d9d9d9; --note: #666;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b8860b; --c5: #3b9ad9;
  --c6: #7a4fbf; --c7: #8c564b; --c8: #5f7f00; --c9: #7f7f7f; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181c; --text: #e4e4e4; --soft: #3a3d44; --note: #a0a0a0;
    --c0: #4aa8e8; --c1: #ff8a3d; --c2: #2fd0a0; --c3: #eba0cb; --c4: #e6b422; --c5: #8fd0ff;
    --c6: #b093f0; --c7: #c98f80; --c8: #a8cc3a; --c9: #b0b0b0; } }
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif;
  max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--soft); text-align: left;
  vertical-align: top; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; font-size: 13px; }
figure { margin: 1rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--text); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--soft); } path { fill: none; stroke-width: 1.5; }
rect { fill: var(--c0); } .goal { stroke: var(--text); stroke-dasharray: 4 3; }
.mark line { stroke: var(--note); stroke-dasharray: 2 3; } .mark text { font-size: 10px; }
.names span { margin-right: .8rem; white-space: nowrap; } .note { color: var(--note); }
.names i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
)";

std::string colours() {
  std::string out;
  for (int i = 0; i < 10; ++i) {
    out += fmt::format(
        "path.c{0} {{ stroke: var(--c{0}); }} i.c{0} {{ background: var(--c{0}); }}\n", i);
  }
  return out;
}

bool is_number(const std::string& header) { return header.ends_with('#'); }

// Marks only what changed the run; the start and the orderly end of each process would hide that.
bool is_marked(const launcher::EventView& event) {
  if (event.kind == "worker-exited") return !event.text.ends_with("exited with code 0");
  constexpr std::array<std::string_view, 10> kMarked = {
      "action", "evict",  "resize",    "kill-restart", "host-lost",
      "hang",   "paused", "continued", "resumed",      "stopping"};
  return std::ranges::find(kMarked, event.kind) != kMarked.end();
}

std::vector<PlotMark> marks_of(const std::vector<launcher::EventView>& events) {
  std::vector<PlotMark> marks;
  for (const launcher::EventView& event : events) {
    if (!is_marked(event)) continue;
    marks.push_back({event.time_s, std::to_string(marks.size() + 1),
                     fmt::format("{:.1f} s: {}: {}", event.time_s, event.kind, event.text)});
  }
  return marks;
}

// `value` of each worker over time; a gap if nothing was reported.
Plot over_time(const RunView& run, std::string title, std::string unit,
               double (*value)(const WorkerPoint&)) {
  Plot plot{std::move(title), "s", std::move(unit), {}, marks_of(run.events)};
  for (const WorkerLine& worker : run.workers) {
    PlotLine line{worker.name, {}};
    double last = -1;
    for (const WorkerPoint& point : worker.points) {
      if (last >= 0 && point.time_s - last > 2.5 * run.width_s) {
        line.points.emplace_back((last + point.time_s) / 2,
                                 std::numeric_limits<double>::quiet_NaN());
      }
      line.points.emplace_back(point.time_s, value(point));
      last = point.time_s;
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

std::string marked_list(const RunView& run) {
  const std::vector<PlotMark> marks = marks_of(run.events);
  if (marks.empty()) return "<p>No action was taken, and nothing failed.</p>\n";
  std::string out = "<details open=\"\"><summary>What happened</summary>\n<ol>\n";
  for (std::size_t i = 0; i < marks.size() && i < kEvents; ++i) {
    out += fmt::format("<li>{}</li>\n", escaped(marks[i].text));
  }
  out += "</ol>\n";
  if (marks.size() > kEvents) {
    out += fmt::format("<p>and {} more, see events.jsonl</p>\n", marks.size() - kEvents);
  }
  return out + "</details>\n";
}

std::string paragraphs(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("<p>{}</p>\n", escaped(line));
  return out;
}

std::string table_section(const std::string& title, const TableView& view) {
  if (view.rows.empty() && view.below.empty()) return "";
  std::string out = fmt::format("<details open=\"\"><summary>{}</summary>\n", escaped(title));
  out += paragraphs(view.above);
  if (!view.rows.empty()) out += table(view.header, view.rows);
  return out + paragraphs(view.below) + "</details>\n";
}

}  // namespace

std::string html(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), kStyle, colours(), body);
}

std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table>\n<tr>";
  for (const std::string& name : header) {
    out += is_number(name)
               ? fmt::format("<th class=\"n\">{}</th>", escaped(name.substr(0, name.size() - 1)))
               : fmt::format("<th>{}</th>", escaped(name));
  }
  out += "</tr>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = i < header.size() && is_number(header[i]);
      out += fmt::format("<td{}>{}</td>", number ? " class=\"n\"" : "", escaped(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string run_section(const RunView& run, int level) {
  std::string out = fmt::format("<h{0}>{1}</h{0}>\n", level, escaped(run.heading));
  if (run.workers.empty()) {
    out +=
        "<p class=\"note\">What its workers measured over time is not known: nothing was "
        "recorded in history.db.</p>\n";
  } else {
    out += draw(over_time(run, "Batch of each worker", "samples of a step",
                          [](const WorkerPoint& p) { return p.batch; }));
    out += draw(
        over_time(run, "Speed of each worker's own work", "samples/s", [](const WorkerPoint& p) {
          return p.speed > 0 ? p.speed : std::numeric_limits<double>::quiet_NaN();
        }));
  }
  out += marked_list(run);
  out += table_section("Where the workers' time went", run.bill);
  out += table_section("What the workers exchanged", run.traffic);
  out += table_section("What the run could have been", run.what_if);
  if (run.summary.empty()) return out + "<p class=\"note\">It has not ended.</p>\n";
  out += "<details open=\"\"><summary>Summary</summary>\n<pre>";
  for (const std::string& line : run.summary) out += escaped(line) + "\n";
  return out + "</pre></details>\n";
}

}  // namespace antdt::page
