// Pages: their content, and that they load nothing else.
#include "report/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "bench/stragglers/page.h"

namespace antdt::page {
namespace {

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}
bool has(const std::string& text, const std::string& what) { return times(text, what) > 0; }

// The path of a line, as numbers.
std::vector<double> numbers_of_path(const std::string& svg, const std::string& colour) {
  const auto begin = svg.find("d=\"", svg.find("class=\"" + colour + "\"")) + 3;
  const std::string d = svg.substr(begin, svg.find('"', begin) - begin);
  const std::regex number("[0-9.]+");
  std::vector<double> out;
  for (auto it = std::sregex_iterator(d.begin(), d.end(), number); it != std::sregex_iterator();
       ++it) {
    out.push_back(std::stod(it->str()));
  }
  return out;
}

RunView a_run() {
  RunView run;
  run.heading = "mix, nd";
  run.workers = {{"w0", {{0.5, 32, 60}, {1.5, 32, 62}, {9.5, 4, 61}}},
                 {"w1", {{0.5, 32, 500}, {1.5, 32, 0}, {2.5, 36, 498}}}};
  run.events = {{1.0, "worker-started", "w1 started on a"},
                {2.0, "action", "adjust-batch w0 (applied): its batch goes from 32 to 4"},
                {3.0, "worker-exited", "w1 on a was killed by signal 9"},
                {4.0, "worker-exited", "w0 on a exited with code 0"}};
  run.summary = {"job: done in 10s", "actions: 1"};
  return run;
}

TEST(PlotTest, StepsOfAnAxisAreRound) {
  EXPECT_DOUBLE_EQ(round_step(0.7), 1);
  EXPECT_DOUBLE_EQ(round_step(1), 1);
  EXPECT_DOUBLE_EQ(round_step(1.01), 2);
  EXPECT_DOUBLE_EQ(round_step(230), 500);
  EXPECT_DOUBLE_EQ(round_step(0.06), 0.1);
  EXPECT_DOUBLE_EQ(round_step(7), 10);
}

TEST(PlotTest, LinesAreWhereTheirValuesAre) {
  const std::string svg =
      draw(Plot{"t", "s", "samples", {{"w0", {{0, 0}, {50, 50}, {100, 100}}}}, {}});
  const auto at = numbers_of_path(svg, "c0");
  ASSERT_EQ(at.size(), 6U);
  EXPECT_LT(at[0], at[2]);
  EXPECT_NEAR(at[2] - at[0], at[4] - at[2], 0.11);
  EXPECT_GT(at[1], at[3]);  // upwards
  EXPECT_NEAR(at[1] - at[3], at[3] - at[5], 0.11);
  EXPECT_TRUE(has(svg, "<title>w0</title>"));
}

TEST(PlotTest, AGapIsNotDrawnOver) {
  const double gap = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      draw(Plot{"t", "s", "", {{"w0", {{0, 1}, {1, 1}, {2, gap}, {3, 1}}}}, {}});
  const auto begin = svg.find("d=\"M");
  EXPECT_EQ(times(svg.substr(begin, svg.find("\"", begin + 3) - begin), "M"), 2U);
  EXPECT_FALSE(has(svg, "nan"));
}

TEST(PlotTest, ALineOfAMillionPointsIsDrawnByMeans) {
  PlotLine line{"w0", {}};
  for (int i = 0; i < 1'000'000; ++i) line.points.emplace_back(i, i % 2 == 0 ? 0 : 10);
  const std::string svg = draw(Plot{"t", "s", "", {line}, {}});
  EXPECT_LT(svg.size(), 30'000U);
  const auto at = numbers_of_path(svg, "c0");
  ASSERT_GT(at.size(), 1000U);
  EXPECT_NEAR(at[1], at[at.size() - 1], 1);  // 5 everywhere
}

TEST(PlotTest, APlotOfNothingIsDrawn) {
  EXPECT_FALSE(has(draw(Plot{"t", "s", "", {}, {}}), "nan"));
  EXPECT_FALSE(has(draw(BarChart{"t", {}, 0, 0}), "nan"));
}

TEST(PlotTest, BarsAreAsLongAsTheirValues) {
  const std::string svg =
      draw(BarChart{"t", {{"none", 0.25, "a quarter"}, {"nd", 1, "all"}}, 1, 1});
  std::smatch found;
  const std::regex bars("<rect [^>]*width=\"([0-9.]+)\".*<rect [^>]*width=\"([0-9.]+)\"",
                        std::regex::extended);
  std::string one_line = svg;
  std::ranges::replace(one_line, '\n', ' ');
  ASSERT_TRUE(std::regex_search(one_line, found, bars));
  EXPECT_NEAR(4 * std::stod(found[1]), std::stod(found[2]), 0.5);
  EXPECT_TRUE(has(svg, "a quarter"));
}

TEST(PageTest, ARunShowsBatchAndSpeedOfEachWorkerAndWhatHappened) {
  const std::string body = run_section(a_run(), 1);
  EXPECT_TRUE(has(body, "<h1>mix, nd</h1>"));
  EXPECT_EQ(times(body, "<svg"), 2U);
  EXPECT_EQ(times(body, "<title>w1</title>"), 2U);
  // The action and the death; not the start and the orderly end.
  EXPECT_EQ(times(body, "<li>"), 2U);
  EXPECT_TRUE(has(body, "<li>2.0 s: action: adjust-batch w0 (applied): its batch goes"));
  EXPECT_TRUE(has(body, "<li>3.0 s: worker-exited: w1 on a was killed by signal 9</li>"));
  EXPECT_EQ(times(body, "class=\"mark\""), 4U);
  EXPECT_TRUE(has(body, "job: done in 10s\nactions: 1\n"));
  // w0 was silent from 1.5 to 9.5 s; w1 had no own work in one of its seconds.
  EXPECT_EQ(times(body, "M"), 2 + 1 + 2U + 2);
}

TEST(PageTest, MissingPartsAreNamed) {
  RunView run;
  run.heading = "h";
  const std::string body = run_section(run, 2);
  EXPECT_TRUE(has(body, "nothing was recorded"));
  EXPECT_TRUE(has(body, "No action was taken"));
  EXPECT_TRUE(has(body, "It has not ended."));
}

TEST(PageTest, TheBillAndWhatTheRunCouldHaveBeenAreTables) {
  RunView run = a_run();
  EXPECT_FALSE(has(run_section(run, 1), "time went"));
  run.bill = {{"lost: 1 h"}, {"lost h#", "culprit"}, {{"0.5", "w<3"}}, {}};
  run.traffic = {{"MB sent: 7"}, {"from", "to"}, {{"host-1", "host<2"}}, {}};
  run.what_if = {{}, {}, {}, {"it cannot be simulated"}};
  const std::string html = run_section(run, 1);
  EXPECT_TRUE(has(html, "<p>lost: 1 h</p>\n<table>"));
  EXPECT_TRUE(has(html, "<td class=\"n\">0.5</td><td>w&lt;3</td>"));
  EXPECT_TRUE(has(html, "<td>host-1</td><td>host&lt;2</td>"));
  EXPECT_TRUE(has(html, "What the run could have been"));
  EXPECT_TRUE(has(html, "<p>it cannot be simulated</p>"));
}

TEST(PageTest, TextIsNeverMarkup) {
  RunView run = a_run();
  run.heading = "<script>alert(1)</script>";
  run.workers[0].name = "\"><b>";
  run.events[1].text = "</title></svg><img src=x> & more";
  run.summary = {"</pre><script>"};
  const std::string body = html("<i>", run_section(run, 1));
  for (const char* bad : {"<script", "<b>", "<img", "<i>", "</pre><s"}) {
    EXPECT_FALSE(has(body, bad)) << bad;
  }
  EXPECT_TRUE(has(body, "&lt;img src=x&gt; &amp; more"));
}

TEST(PageTest, APageLoadsNothingElse) {
  const std::string whole = html("title", run_section(a_run(), 1));
  for (const char* outside : {"http", "src=", "<link", "<script", "url(", "@import"}) {
    EXPECT_FALSE(has(whole, outside)) << outside;
  }
  EXPECT_TRUE(has(whole, "prefers-color-scheme: dark"));
  EXPECT_TRUE(whole.starts_with("<!DOCTYPE html>"));
}

TEST(PageTest, AComparisonShowsEachSituationAndWhatWasNotRun) {
  const auto cells = stragglers::matrix({true, {"mix", "pai-4"}, {"none", "nd"}, ""});
  ASSERT_TRUE(cells);
  std::vector<stragglers::Line> lines;
  for (const stragglers::Cell& cell : *cells) {
    stragglers::Measured m;
    m.line.job_seconds = cell.solution == "nd" ? 125 : 100;
    m.line.ideal_seconds = cell.solution == "nd" ? 100 : 20;
    m.line.actions = 7;
    std::vector<stragglers::Measured> runs;
    if (cell.not_run.empty()) runs.push_back(m);
    lines.push_back(stragglers::line_of(cell, std::move(runs), ""));
  }
  stragglers::compare_with_none(lines);
  const std::string page = stragglers::comparison_page(lines, "antdt bench <x>", {a_run()});
  EXPECT_TRUE(has(page, "<h2>mix</h2>"));
  EXPECT_FALSE(has(page, "<h2>pai-4</h2>"));
  EXPECT_TRUE(has(page, "not run: needs the batch times"));
  EXPECT_TRUE(has(page, "0.800  4.00 x none"));
  EXPECT_TRUE(has(page, "500 s  (its job: 100.0 s, ideal 20.0 s, 7 actions)"));
  EXPECT_TRUE(has(page, "antdt bench &lt;x&gt;"));
  EXPECT_TRUE(has(page, "<h2>mix, nd</h2>"));
}

}  // namespace
}  // namespace antdt::page
