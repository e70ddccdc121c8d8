#include "launcher/doctor/findings_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/doctor/judge.h"
#include "tests/launcher/doctor/healthy.h"

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Findings kFew = {
    {Level::kOk, "hosta", "name", "its address", "10.0.0.1", "agents are reached by it", ""},
    {Level::kWarning, "hosta", "clock", "its clock", "7 s behind", "logs", "start chronyd"},
    {Level::kError, "this host", "keys", "/k/job.key", "mode 0644", "a key is secret", "chmod 600"},
};

TEST(FindingsView, TheWorstComesFirstWithItsReasonAndAdvice) {
  EXPECT_THAT(
      finding_lines(kFew, false),
      ElementsAre("error: this host, keys", "  looked at: /k/job.key", "  found:     mode 0644",
                  "  matters:   a key is secret", "  do:        chmod 600", "warning: hosta, clock",
                  "  looked at: its clock", "  found:     7 s behind", "  matters:   logs",
                  "  do:        start chronyd", "ok: hosta, name: its address: 10.0.0.1"));
  EXPECT_EQ(count_line(kFew), "1 error, 1 warning, 0 notes; 1 check well");
}

TEST(FindingsView, ColoursAreForTerminals) {
  EXPECT_THAT(finding_lines(kFew, true), Contains(HasSubstr("\x1b[1;31merror")));
  EXPECT_THAT(finding_lines(kFew, false), Not(Contains(HasSubstr("\x1b"))));
}

// What a host answers may be anything.
TEST(FindingsView, AHostCannotControlTheTerminal) {
  const Findings findings = {{Level::kNote, "evil\x1b[2J", "name", "a\nb", "c\x7f", "d", ""}};
  for (const std::string& line : finding_lines(findings, false)) {
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    EXPECT_THAT(line, Not(HasSubstr("\x7f")));
  }
}

TEST(FindingsView, LinksAreAMatrixFromRowToColumn) {
  Facts facts = healthy();
  link_of(facts, 2, 1).told.bytes = 5'000'000;
  link_of(facts, 1, 3) = {1, 3, "", "timed out", {}};
  EXPECT_THAT(link_lines(facts),
              ElementsAre("bandwidth of one connection, Mbit/s",  //
                          "  from \\ to  hosta  hostb  hostc",    //
                          "  hosta          -   9000  fails",     //
                          "  hostb        100      -   9000",     //
                          "  hostc       9000   9000      -",     //
                          "round trip, ms",                       //
                          "  from \\ to  hosta  hostb  hostc",    //
                          "  hosta          -   0.20  fails",     //
                          "  hostb       0.20      -   0.20",     //
                          "  hostc       0.20   0.20      -"));
  facts.links.clear();
  EXPECT_TRUE(link_lines(facts).empty());
}

TEST(FindingsView, ManyHostsHaveARowEachWithTheirWorstLinks) {
  Facts facts;
  for (int i = 0; i < 13; ++i) {
    facts.hosts.emplace_back();
    facts.hosts.back().name = fmt::format("h{:02}", i);
  }
  for (std::size_t from = 0; from < 13; ++from) {
    for (std::size_t to = 0; to < 13; ++to) {
      if (from != to) facts.links.push_back({from, to, "", "", {200, 450'000'000, 400'000}});
    }
  }
  link_of(facts, 4, 7).told = {3000, 5'000'000, 400'000};
  link_of(facts, 9, 2) = {9, 2, "", "timed out", {}};
  const std::vector<std::string> lines = link_lines(facts);
  ASSERT_EQ(lines.size(), 15U);
  EXPECT_THAT(lines[1], HasSubstr("host  out median  least  to   in median  least  from  round"));
  EXPECT_EQ(lines[6], "  h04         9000    100  h07       9000   9000  h00         3.00");
  EXPECT_EQ(lines[9], "  h07         9000   9000  h00       9000    100  h04         0.20");
  EXPECT_EQ(lines[11], "  h09         9000  fails  h02       9000   9000  h00         0.20");
}

TEST(FindingsView, JsonHasFindingsAndLinks) {
  Facts facts = healthy();
  link_of(facts, 1, 3) = {1, 3, "", "timed out", {}};
  const auto json = nlohmann::json::parse(findings_json(facts, judge(facts)));
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["warnings"], 0);
  EXPECT_EQ(json["links"].size(), 6U);
  EXPECT_EQ(json["links"][0]["from"], "10.0.0.1:7700");
  EXPECT_EQ(json["links"][0]["to"], "10.0.0.2:7700");
  EXPECT_DOUBLE_EQ(json["links"][0]["megabits_per_second"], 9000);
  EXPECT_EQ(json["links"][1]["error"], "timed out");
  for (const auto& finding : json["findings"]) {
    EXPECT_TRUE(finding.contains("advice")) << finding.dump();
  }
}

}  // namespace
}  // namespace antdt::launcher
