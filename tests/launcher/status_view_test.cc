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
  EXPECT_THAT(worker_table(parse_status(kStatus).value()),
              ElementsAre("worker  rank  host  pid  attempt  state    batch  samples/s  verdict",
                          "w0         0  h1     11        1  joined     300      4,000  ok",
                          "w1         -  h1      -        2  started      0          -"));
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

}  // namespace
}  // namespace antdt::launcher
