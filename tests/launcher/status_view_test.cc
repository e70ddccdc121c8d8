#include "launcher/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/text_table.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;

const std::string kStatus = R"({"job":"ctr-1","state":"training","generation":2,"incarnation":1,
  "epoch":0,"epochs":2,"samples_done":4300,"samples_total":10000,"samples_per_second":12345.4,
  "train_loss":0.51234,"eta_seconds":75.2,"message":"","last_eval":{"auc":0.7291,"records":2000},
  "workers":[
    {"rank":0,"id":"w0","host":"h1","pid":11,"attempt":1,"state":"joined","batch":300,
     "samples_per_second":4000,"verdict":"ok"},
    {"rank":null,"id":"w1","host":"h1","pid":0,"attempt":2,"state":"started","batch":0,
     "samples_per_second":0,"verdict":""}]})";

TEST(StatusView, ProgressIsOneLine) {
  EXPECT_EQ(progress_line(parse_status(kStatus).value()),
            "epoch 1/2  training  43%  12,345 samples/s  ETA 1m 15s  loss 0.5123  (AUC 0.7291)");
}

TEST(StatusView, WhatIsNotKnownYetIsLeftOut) {
  EXPECT_EQ(progress_line(parse_status(R"({"state":"starting","epochs":0})").value()), "starting");
}

TEST(StatusView, EachWorkerIsALineUnderAlignedColumns) {
  EXPECT_THAT(worker_table(parse_status(kStatus).value(), {}),
              ElementsAre("worker  rank  host  pid  attempt  state    batch  samples/s  verdict",
                          "w0         0  h1     11        1  joined     300      4,000  ok",
                          "w1         -  h1      -        2  started      0          -"));
}

TEST(StatusView, EachServerIsALineThatSaysWhatItIsAndWhetherItIsSlow) {
  const std::string first = R"x({"id":"s0","host":"h1","pid":7,"attempt":1,"state":"joined",
    "rows":1200,"bytes":1048576,"requests":10,"service_us_p50":90,"service_us_p99":200,
    "verdict":"transient straggler, 3.0x slower (unknown)")x";
  EXPECT_THAT(
      server_table(parse_status(R"({"servers":[)" + first + "}]}").value()),
      ElementsAre(
          "server  host  pid  attempt  state    rows  MiB  requests  p50 us  p99 us  verdict",
          "s0      h1      7        1  joined  1,200  1.0        10      90     200  transient "
          "straggler, 3.0x slower (unknown)"));
  const auto two =
      server_table(parse_status(R"({"servers":[)" + first + R"(,"role":"primary"}]})").value());
  ASSERT_EQ(two.size(), 2U);
  EXPECT_TRUE(two[0].ends_with("  role"));
  EXPECT_TRUE(two[1].ends_with("  primary"));
}

TEST(StatusView, TheBlockFitsTheTerminalAndEachPartIsOneLine) {
  auto status = parse_status(kStatus).value();
  status.message = "waiting\nfor w1";
  const auto lines = live_block(status, {{12.34, "action", "adjust-batch w1: it is slow"}}, 30);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], "epoch 1/2  training  43%  12,~");
  EXPECT_EQ(lines[1], "waiting for w1");
  EXPECT_EQ(lines[5], "    12.3s  action: adjust-bat~");
}

TEST(StatusView, AnAnswerThatIsNoObjectIsAnErrorAndWrongFieldsAreIgnored) {
  EXPECT_FALSE(parse_status("[1]"));
  EXPECT_FALSE(parse_status("{"));
  const auto status = parse_status(R"({"epoch":"three","workers":[7,{"id":4}],"state":"done"})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, "done");
  EXPECT_EQ(status->workers.size(), 1U);
}

TEST(StatusView, EventsThatMatterAreToldWithoutATerminal) {
  const auto action = parse_event(R"({"time_s":3.0,"kind":"action","text":"adjust-batch w3"})");
  ASSERT_TRUE(action);
  EXPECT_TRUE(is_notable(*action));
  EXPECT_EQ(event_line(*action), "     3.0s  action: adjust-batch w3");
  EXPECT_TRUE(is_notable({1, "epoch", ""}));
  EXPECT_FALSE(is_notable({1, "checkpoint", ""}));
}

TEST(TextTable, NumbersAreGroupedAndTimesAreShort) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(clock_text(9.44), "9.4s");
  EXPECT_EQ(clock_text(59.6), "1m 00s");
  EXPECT_EQ(clock_text(3725), "1h 02m");
  EXPECT_EQ(clock_text(-1), "?");
}

TEST(TextTable, CuttingCountsCharactersAndNotBytes) {
  EXPECT_EQ(cut("größer", 6), "größer");
  EXPECT_EQ(cut("größer", 5), "größ~");
}

const std::string kTroubled = R"({"job":"ctr-1","state":"training","generation":3,"lineage":1,
  "incarnation":1,"waiting_for":"w1 to join","workers":[{"id":"w1","rank":0,"state":"joined"},
    {"id":"w12","rank":1,"state":"waiting","tried_again_in_s":2.5}],
  "failures":[
    {"time_s":4.25,"worker":"w1","host":"b","class":"signal","cause":"w1 was killed\nlog line",
     "first":true,"recovered_in_s":0.5},
    {"time_s":4.5,"worker":"w0","host":"a","class":"collective","cause":"lost its peers",
     "first":false,"recovered_in_s":null}],
  "hosts":[{"name":"a","room":2,"up":true,"closed":false,"probation":false},
           {"name":"b","room":2,"up":true,"closed":false,"probation":true},
           {"name":"c","room":2,"up":false,"closed":false,"probation":false},
           {"name":"d","room":2,"up":true,"closed":true,"probation":false}],
  "budgets":{"oom":{"limit":2,"left":1}}})";

TEST(StatusView, TellsWhoIsWaitedForWhatFailedAndWhichHostsAreAvoided) {
  const auto status = parse_status(kTroubled).value();
  const auto lines = status_table(status, {});
  EXPECT_THAT(lines, testing::Contains("waiting for w1 to join"));
  EXPECT_THAT(lines, testing::Contains("hosts: a (room for 2), b (failed often lately, avoided), c "
                                       "(not reached), d (evicted, takes no workers)"));
  EXPECT_THAT(lines,
              testing::Contains("     4.2s  w1 on b, signal: w1 was killed; went on after 0.5s"));
  EXPECT_THAT(lines,
              testing::Contains("     4.5s  w0 on a, collective: lost its peers; a consequence"));
  EXPECT_EQ(status.budgets.at("oom").left, 1U);
  EXPECT_EQ(status.workers[1].tried_again_in_s, 2.5);
  EXPECT_FALSE(status.workers[1].running());
}

TEST(StatusView, HostsAreNotToldOfWhereThereIsNothingToTell) {
  const auto one = parse_status(R"({"hosts":[{"name":"a","room":9,"up":true}]})").value();
  for (const std::string& line : status_table(one, {})) {
    EXPECT_FALSE(line.starts_with("hosts")) << line;
  }
}

TEST(StatusView, AWorkersLastEventIsTheNewestThatNamesIt) {
  const std::vector<EventView> events = {{1, "worker-started", "w1 started on a (pid 7)"},
                                         {2, "worker-exited", "w12 on a exited with code 1"}};
  ASSERT_NE(last_event(events, "w1"), nullptr);
  EXPECT_EQ(last_event(events, "w1")->time_s, 1);
  EXPECT_EQ(last_event(events, "w12")->time_s, 2);
  EXPECT_EQ(last_event(events, "w2"), nullptr);
  const std::string json = with_last_events(R"({"workers":[{"id":"w12"},{"id":"w3"}]})", events);
  EXPECT_EQ(json, R"({"workers":[{"id":"w12","last_event":{"kind":"worker-exited",)"
                  R"("text":"w12 on a exited with code 1","time_s":2.0}},)"
                  R"({"id":"w3","last_event":null}]})");
}

}  // namespace
}  // namespace antdt::launcher
