// The bill of a run: to whom lost time is charged, and that its sums are those of the summary.
#include "report/bill.h"

#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/report_page.h"

namespace antdt::report {
namespace {

using shard_server::Moment;
using shard_server::Series;
using shard_server::WorkerMoment;

WorkerSummary worker(const std::string& id, double compute_s, double wait_s) {
  WorkerSummary w;
  w.id = id;
  w.host = "host-" + id;
  w.attempt = 1;
  w.lost_time.compute = compute_s;
  w.lost_time.collective_wait = wait_s;
  w.lost_time.startup = 1;
  w.lost_time.other = 0.5;
  return w;
}

// A second of one worker: `batches` of 10 samples, each computed and waited for that long.
WorkerMoment measured(std::uint32_t index, std::uint64_t batches, std::uint64_t compute_ms,
                      std::uint64_t wait_ms) {
  WorkerMoment w;
  w.member = {{'w', index}, Attempt{1}};
  w.batches = batches;
  w.samples = 10 * batches;
  w.compute_us = 1000 * compute_ms * batches;
  w.wait_us = 1000 * wait_ms * batches;
  return w;
}

// w2 takes three times as long as w0 and w1. A step is 300 ms, and 10 ms for the exchange.
Series with_a_straggler(int seconds, const std::string& cause) {
  Series series;
  for (int s = 0; s < seconds; ++s) {
    Moment m;
    m.from_s = s;
    m.seconds = 1;
    m.workers = {measured(0, 3, 100, 210), measured(1, 3, 100, 210), measured(2, 3, 300, 10)};
    m.workers[2].verdict = "persistent";
    m.workers[2].cause = cause;
    series.moments.push_back(std::move(m));
  }
  return series;
}

Summary summary_of_straggler(int seconds) {
  Summary s;
  const double n = seconds;
  s.wall_seconds = 1.5 + 0.93 * n;
  s.workers = {worker("w0", 0.3 * n, 0.63 * n), worker("w1", 0.3 * n, 0.63 * n),
               worker("w2", 0.9 * n, 0.03 * n)};
  return s;
}

double charged(const Bill& bill, const std::string& culprit, const std::string& cause,
               const std::string& remedy = "none") {
  double seconds = 0;
  for (const Charge& c : bill.charges) {
    if (c.culprit == culprit && c.cause == cause && c.remedy == remedy) seconds += c.seconds;
  }
  return seconds;
}

double total_of(const Summary& summary, double TimeSpent::*part) {
  double seconds = 0;
  for (const WorkerSummary& w : summary.workers) seconds += w.lost_time.*part;
  return seconds;
}

void expect_sums_of(const Summary& summary, const Bill& bill) {
  const std::pair<const char*, double TimeSpent::*> parts[] = {
      {"data", &TimeSpent::data},
      {"collective_wait", &TimeSpent::collective_wait},
      {"shard_wait", &TimeSpent::shard_wait},
      {"reconfigure", &TimeSpent::reconfigure},
      {"checkpoint", &TimeSpent::checkpoint},
      {"startup", &TimeSpent::startup},
      {"other", &TimeSpent::other}};
  double all = total_of(summary, &TimeSpent::compute);
  for (const auto& [name, part] : parts) {
    double seconds = 0;
    for (const Charge& c : bill.charges) seconds += c.part == name ? c.seconds : 0;
    EXPECT_NEAR(seconds, total_of(summary, part), 1e-9) << name;
    all += total_of(summary, part);
  }
  EXPECT_NEAR(bill.total_seconds, all, 1e-9);
  EXPECT_NEAR(bill.useful_seconds + bill.lost_seconds, all, 1e-9);
}

TEST(BillTest, WhatOthersWaitForAStragglerIsChargedToIt) {
  const Summary summary = summary_of_straggler(10);
  const Bill bill = bill_of(summary, with_a_straggler(10, "compute"), SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "all", "exchange"), 3 * 0.03 * 10, 1e-9);
  // Two workers wait for 200 ms of each step, and it computes 200 ms more than they do.
  EXPECT_NEAR(charged(bill, "w2", "slow computing"), 3 * 0.6 * 10, 1e-9);
  EXPECT_NEAR(bill.useful_seconds, 3 * 0.3 * 10, 1e-9);
  EXPECT_EQ(bill.charges.front().culprit, "w2");
  EXPECT_EQ(bill.charges.front().host, "host-w2");
}

TEST(BillTest, TheMonitorsCauseIsNamed) {
  const Summary summary = summary_of_straggler(10);
  const Bill bill = bill_of(summary, with_a_straggler(10, "throttled"), SyncStrategy::kAllReduce);
  EXPECT_NEAR(charged(bill, "w2", "slow computing (throttled)"), 18, 1e-9);
}

TEST(BillTest, AStragglerIsFoundBeforeTheMonitorNamesIt) {
  Series series = with_a_straggler(10, "");
  for (Moment& m : series.moments) m.workers[2].verdict.clear();
  const Bill bill = bill_of(summary_of_straggler(10), series, SyncStrategy::kAllReduce);
  EXPECT_NEAR(charged(bill, "w2", "slow computing"), 18, 1e-9);
}

TEST(BillTest, WhoeverIsSlowBecauseOfItsDataIsChargedForThat) {
  Series series = with_a_straggler(10, "");
  for (Moment& m : series.moments) {
    m.workers[2].verdict.clear();
    m.workers[2].data_us = 600'000;
    m.workers[2].compute_us = 300'000;
  }
  Summary summary = summary_of_straggler(10);
  summary.workers[2].lost_time.compute = 3;
  summary.workers[2].lost_time.data = 6;
  const Bill bill = bill_of(summary, series, SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "w2", "slow data"), 2 * 0.6 * 10, 1e-9);
  EXPECT_NEAR(charged(bill, "w2", "data"), 6, 1e-9);
}

TEST(BillTest, ARemedyIsNamedFromTheMomentOfItsAction) {
  Summary summary = summary_of_straggler(10);
  Action action;
  action.time_s = 4;
  action.kind = "kill-restart";
  action.target = "w2";
  action.outcome = "advised";
  summary.actions = {action};
  action.time_s = 6.5;
  action.kind = "adjust-batch";
  action.target = "w0";
  action.outcome = "applied";
  summary.actions.push_back(action);
  action.kind = "inject";
  summary.actions.push_back(action);
  const Bill bill = bill_of(summary, with_a_straggler(10, "compute"), SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "w2", "slow computing"), 4 * 1.8, 1e-9);
  EXPECT_NEAR(charged(bill, "w2", "slow computing", "kill-restart (advised)"), 3 * 1.8, 1e-9);
  EXPECT_NEAR(charged(bill, "w2", "slow computing", "adjust-batch"), 3 * 1.8, 1e-9);
}

TEST(BillTest, StepsThatAreUnevenByChanceAreNobodysFault) {
  Series series;
  Moment m;
  m.seconds = 1;
  m.workers = {measured(0, 5, 100, 30), measured(1, 5, 110, 20)};
  series.moments = {m};
  Summary summary;
  summary.workers = {worker("w0", 0.5, 0.15), worker("w1", 0.55, 0.10)};
  const Bill bill = bill_of(summary, series, SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "all", "exchange"), 0.2, 1e-9);
  EXPECT_NEAR(charged(bill, "all", "uneven steps"), 0.05, 1e-9);
}

TEST(BillTest, WithoutABarrierNobodyWaitsForAnotherWorker) {
  const Summary summary = summary_of_straggler(10);
  const Bill bill = bill_of(summary, with_a_straggler(10, "compute"), SyncStrategy::kPsAsp);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "all", "exchange"), (2 * 0.63 + 0.03) * 10, 1e-9);
  EXPECT_NEAR(charged(bill, "w2", "slow computing"), 6, 1e-9) << "only what it computed itself";
}

TEST(BillTest, ASlowLinkIsChargedForWhatItAddsToEachStep) {
  Series series;
  Moment m;
  m.seconds = 1;
  m.workers = {measured(0, 5, 50, 150), measured(1, 5, 50, 150)};
  m.workers[1].verdict = "persistent";
  m.workers[1].cause = "network";
  m.workers[1].severity = 2;  // 200 ms a step instead of 100
  series.moments = {m};
  Summary summary;
  summary.workers = {worker("w0", 0.25, 0.75), worker("w1", 0.25, 0.75)};
  const Bill bill = bill_of(summary, series, SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "w1", "slow link"), 2 * 0.5, 1e-9);
  EXPECT_NEAR(charged(bill, "all", "exchange"), 2 * 0.25, 1e-9);
}

TEST(BillTest, AFailureIsChargedForTheChangeOfMembersAndForItsSecondStart) {
  Summary summary = summary_of_straggler(10);
  summary.workers[1].attempt = 2;
  summary.workers[1].lost_time.startup = 3;
  for (WorkerSummary& w : summary.workers) w.lost_time.reconfigure = 0.4;
  Failure first;
  first.worker = "w1";
  first.cls = "signal";
  first.first = true;
  first.recovered_in_s = 0.4;
  Failure victim = first;
  victim.worker = "w0";
  victim.first = false;
  summary.failures = {victim, first};
  const Bill bill = bill_of(summary, with_a_straggler(10, "compute"), SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "w1", "failure (signal)", "the others went on"), 1.2, 1e-9);
  EXPECT_NEAR(charged(bill, "w1", "failure (signal)", "started again"), 1.5, 1e-9);
  EXPECT_NEAR(charged(bill, "all", "start"), 1 + 1.5 + 1, 1e-9);
}

TEST(BillTest, ARunWithoutASeriesStillAddsUp) {
  const Summary summary = summary_of_straggler(10);
  const Bill bill = bill_of(summary, {}, SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "all", "exchange or waiting, not recorded"), 12.9, 1e-9);
}

// Exactly once, so no sample is in the model twice: the 250 that were given up were computed in
// 15 s * 250 / 1250.
TEST(BillTest, WhatWasTrainedOnceMoreAfterGoingBackIsTheWorkersCountAboveTheModels) {
  Summary summary = summary_of_straggler(10);
  summary.lineages = 2;
  summary.samples_trained = 1000;
  for (WorkerSummary& w : summary.workers) w.samples = 400;
  summary.workers[2].samples = 450;
  const Bill bill = bill_of(summary, with_a_straggler(10, "compute"), SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(bill.repeated_seconds, 3, 1e-9);
}

TEST(BillTest, NothingIsRepeatedIfTrainingNeverWentBackOrTheLastReportsAreMissing) {
  Summary summary = summary_of_straggler(10);
  summary.samples_trained = 1000;
  for (WorkerSummary& w : summary.workers) w.samples = 400;
  summary.lineages = 1;
  EXPECT_EQ(bill_of(summary, {}, SyncStrategy::kAllReduce).repeated_seconds, 0);
  summary.lineages = 2;
  for (WorkerSummary& w : summary.workers) w.samples = 300;
  EXPECT_EQ(bill_of(summary, {}, SyncStrategy::kAllReduce).repeated_seconds, 0);
}

TEST(BillTest, DevicesOfAnotherClassAreNotComparedWithEachOther) {
  Summary summary = summary_of_straggler(10);
  summary.workers[2].device.name = "old";
  Series series = with_a_straggler(10, "device");
  const Bill bill = bill_of(summary, series, SyncStrategy::kAllReduce);
  expect_sums_of(summary, bill);
  EXPECT_NEAR(charged(bill, "w2", "slower device"), 2 * 0.6 * 10, 1e-9) << "the others waited";
  EXPECT_NEAR(bill.useful_seconds, (0.3 + 0.3 + 0.9) * 10, 1e-9);
}

TEST(BillTest, ItsTableHasEveryChargeThatMatters) {
  const Bill bill = bill_of(summary_of_straggler(1000), with_a_straggler(1000, "compute"),
                            SyncStrategy::kAllReduce);
  const BillTable table = table_of(bill);
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows.front(), (std::vector<std::string>{"0.5000", "64.4%", "w2", "host-w2",
                                                          "slow computing", "none"}));
  EXPECT_NE(table.sums.front().find("lost"), std::string::npos);
}

TEST(BillTest, ThePageForUsersNamesEachField) {
  const auto page = read_file(ANTDT_SOURCE_DIR "/docs/reports.md");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(told(*page, "Bill"), names_of<Bill>());
  EXPECT_EQ(told(*page, "Charge"), names_of<Charge>());
}

}  // namespace
}  // namespace antdt::report
