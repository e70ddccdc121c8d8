#include "launcher/summary_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSummary = R"({"schema":1,"job":"ctr-1","state":"done","wall_seconds":12.5,
  "samples_total":16000,"samples_trained":16000,"samples_repeated":0,"samples_lost":0,
  "samples_skipped":0,"samples_unaccounted":0,"samples_per_second":2000.4,
  "epochs":[{"train_loss":0.52,"eval":{"auc":0.71,"log_loss":0.49}},{"train_loss":0.48,"eval":null}],
  "actions":[{"time_s":3.2,"kind":"adjust-batch","target":"w3","reason":"3 times slower"}],
  "exit":{"code":0,"class":"","resumable":false,"first_cause":""},
  "workers":[{"id":"w0","host":"a","samples":12000,
              "lost_time":{"compute":5,"data":1,"collective_wait":2}},
             {"id":"w1","host":"a","samples":4000,
              "lost_time":{"compute":7.5,"data":0.5,"collective_wait":0}}],
  "lost_time":{"compute":30,"data":10,"collective_wait":5,"shard_wait":0,"reconfigure":0,
               "checkpoint":1,"startup":4,"other":0}})";

TEST(SummaryView, ShowsQualitySpeedTimeActionsAndAccounts) {
  const auto summary = parse_summary(kSummary);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->exit_code, 0);
  EXPECT_THAT(summary->lines, Contains("ctr-1: done in 13s, 2,000 samples/s"));
  EXPECT_THAT(summary->lines, Contains("    1      0.5200    0.7100    0.4900         -"));
  EXPECT_THAT(summary->lines, Contains("    2      0.4800         -         -         -"));
  EXPECT_THAT(summary->lines, Contains("w0      a      12,000          2,000      6.0s    2.0s"));
  EXPECT_THAT(summary->lines, Contains("w1      a       4,000            500      8.0s    0.0s"));
  EXPECT_THAT(summary->lines,
              Contains("time of all workers: compute 60.0%, data 20.0%, collective wait 10.0%, "
                       "shard wait 0.0%, reconfigure 0.0%, checkpoint 2.0%, startup 8.0%, other "
                       "0.0%"));
  EXPECT_THAT(summary->lines, Contains("      3.2s  adjust-batch w3: 3 times slower"));
  EXPECT_THAT(summary->lines, Contains("samples: 16,000 of 16,000 trained, 0 repeated, 0 lost, 0 "
                                       "skipped, 0 unaccounted"));
  EXPECT_THAT(closing_lines(*summary, "/r"), IsEmpty());
}

TEST(SummaryView, ShowsParameterServersWhereThereAre) {
  std::string text = kSummary;
  text.replace(text.find("\"lost_time\":{\"compute\":30"), 0,
               R"("servers":[{"id":"s0","host":"a","pid":7,"attempt":2,"state":"exited",
                  "rows":15216,"bytes":3145728,"requests":1172,"service_us_p50":117.02,
                  "service_us_p99":611.4}],
                  "staleness":{"mean":1.25,"max":3},
                  "pushes":{"applied":375,"late":4,"repeated":1},)");
  const auto summary = parse_summary(text);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_THAT(
      summary->lines,
      Contains("s0      a       7        2  exited  15,216  3.0     1,172     117     611"));
  EXPECT_THAT(summary->lines, Contains("pushes: 375 applied, 4 late, 1 repeated; staleness 1.2 "
                                       "(most 3)"));
}

TEST(SummaryView, AFailedRunEndsWithItsFirstCause) {
  const auto summary = parse_summary(
      R"({"state":"failed","exit":{"code":1,"class":"program","first_cause":"w1: no such model"}})");
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->exit_code, 1);
  const auto lines = closing_lines(*summary, "/r");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("/r/logs"));
  EXPECT_EQ(lines[1], "first cause: w1: no such model");
}

TEST(SummaryView, AStoppedRunSaysHowToGoOn) {
  const auto summary =
      parse_summary(R"({"state":"stopped","exit":{"code":75,"class":"stopped","resumable":true}})");
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_THAT(closing_lines(*summary, "/r"), Contains(HasSubstr("antdt run --resume /r")));
}

TEST(SummaryView, WhatIsNoSummaryIsRefused) {
  EXPECT_FALSE(parse_summary("{"));
  EXPECT_FALSE(parse_summary("{\"state\":\"done\"}"));
}

}  // namespace
}  // namespace antdt::launcher
