#include "bench/stragglers/page.h"

#include <fmt/format.h>

namespace antdt::stragglers {
namespace {

using page::escaped;

std::string over_none(const Line& line) {
  return line.speedup_over_none ? fmt::format("{:.2f} x none", *line.speedup_over_none) : "";
}

page::BarChart shares(const std::vector<Line>& lines) {
  page::BarChart chart{"Share of ideal (dashed: the best that any schedule could do)", {}, 1, 1};
  for (const Line& line : lines) {
    if (line.runs.empty()) continue;
    const fleet::Comparison& c = line.middle().line;
    std::string text = fmt::format("{:.3f}  {}", c.share_of_ideal(), over_none(line));
    if (line.runs.size() > 1) {
      text +=
          fmt::format("  ({:.3f} to {:.3f} in {} runs)", line.runs.front().line.share_of_ideal(),
                      line.runs.back().line.share_of_ideal(), line.runs.size());
    }
    chart.bars.push_back({line.solution, c.share_of_ideal(), std::move(text)});
  }
  return chart;
}

// The jobs of one situation differ in length, so the chart shows the times for equal work.
page::BarChart times(const std::vector<Line>& lines) {
  constexpr double kIdeal = 100;
  page::BarChart chart{"Job time, seconds for what the best schedule does in 100 s", {}, 0, kIdeal};
  for (const Line& line : lines) {
    if (line.runs.empty()) continue;
    const fleet::Comparison& c = line.middle().line;
    if (c.share_of_ideal() <= 0) continue;
    const double seconds = kIdeal / c.share_of_ideal();
    chart.bars.push_back({line.solution, seconds,
                          fmt::format("{:.0f} s  (its job: {:.1f} s, ideal {:.1f} s, {} actions)",
                                      seconds, c.job_seconds, c.ideal_seconds, c.actions)});
  }
  return chart;
}

std::string whole_table(const std::vector<Line>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines) {
    std::vector<std::string> row = {line.situation, line.solution, fmt::format("{}", line.workers)};
    if (line.runs.empty()) {
      row.insert(row.end(), {"", "", "", "", "", "", "", "not run: " + line.not_run});
    } else {
      const fleet::Comparison& c = line.middle().line;
      row.insert(row.end(),
                 {fmt::format("{:.1f}", c.job_seconds), fmt::format("{:.1f}", c.ideal_seconds),
                  fmt::format("{:.3f}", c.share_of_ideal()),
                  line.speedup_over_none ? fmt::format("{:.2f}", *line.speedup_over_none) : "",
                  fmt::format("{}", c.actions), fmt::format("{}", c.records_repeated),
                  fmt::format("{}", c.records_lost), line.not_run});
    }
    rows.push_back(std::move(row));
  }
  return page::table({"situation", "solution", "workers#", "job s#", "ideal s#", "of ideal#",
                      "over none#", "actions#", "repeated#", "lost#", ""},
                     rows);
}

std::string situation_section(const std::vector<Line>& lines) {
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}{}", escaped(lines.front().situation),
                     escaped(lines.front().what), page::draw(shares(lines)),
                     page::draw(times(lines)));
}

}  // namespace

std::string comparison_page(const std::vector<Line>& lines, const std::string& command,
                            const std::vector<page::RunView>& runs) {
  std::string body =
      "<h1>Solutions for stragglers</h1>\n<p class=\"note\">Real jobs of emulated "
      "devices, each beside the best that any schedule could do. Made by: <code>" +
      escaped(command) + "</code></p>\n" + whole_table(lines);
  std::vector<Line> of_one;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].runs.empty()) of_one.push_back(lines[i]);
    const bool last = i + 1 == lines.size() || lines[i + 1].situation != lines[i].situation;
    if (last && !of_one.empty()) body += situation_section(of_one);
    if (last) of_one.clear();
  }
  body += "<h1>Runs</h1>\n";
  for (const page::RunView& run : runs) body += page::run_section(run, 2);
  return page::html("Solutions for stragglers", body);
}

}  // namespace antdt::stragglers
