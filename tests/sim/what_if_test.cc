// What a run could have been: which workers are left out, what is recommended, and when enough was
// measured to say so.
#include "sim/fleet/what_if.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/fleet/some_workers.h"
#include "sim/fleet/steadiness.h"

namespace antdt::fleet::what_if_test {
namespace {

std::vector<std::vector<std::uint32_t>> indexes(const std::vector<LeftOut>& left_out) {
  std::vector<std::vector<std::uint32_t>> all;
  for (const LeftOut& one : left_out) all.push_back(one.workers);
  return all;
}
using Indexes = std::vector<std::vector<std::uint32_t>>;

TEST(SlowestTest, TheWorkersOfASlowHostAreLeftOutTogether) {
  const auto found = slowest({{"w0", "a", 1}, {"w1", "a", 1}, {"w2", "b", 1}, {"w3", "b", 3}});
  ASSERT_EQ(indexes(found), (Indexes{{2, 3}}));
  EXPECT_EQ(found.front().host, "b");
}

TEST(SlowestTest, OnOneHostEachSlowWorkerIsLeftOutTheSlowestFirst) {
  const auto found =
      slowest({{"w0", "a", 1}, {"w1", "a", 2}, {"w2", "a", 1}, {"w3", "a", 3}, {"w4", "a", 1}});
  EXPECT_EQ(indexes(found), (Indexes{{3}, {1}}));
  EXPECT_EQ(found.front().host, "");
}

TEST(SlowestTest, TheSlowestIsLeftOutEvenIfItIsHardlySlower) {
  EXPECT_EQ(indexes(slowest({{"w0", "a", 1}, {"w1", "a", 1.01}})), (Indexes{{1}}));
}

TEST(SlowestTest, NobodyIsLeftOutIfNobodyWouldBeLeft) {
  EXPECT_TRUE(slowest({}).empty());
  EXPECT_TRUE(slowest({{"w0", "a", 1}}).empty());
  EXPECT_EQ(slowest({{"w0", "a", 9}, {"w1", "b", 8}}).size(), 1U);
}

Alternative took(const std::string& solution, double seconds, std::uint32_t workers) {
  Alternative a;
  a.solution = solution;
  a.line.job_seconds = seconds;
  a.line.workers = workers;
  return a;
}

TEST(CompareTest, TheFastestIsRecommendedAndSavesWhatTheRunAsItWasTookLonger) {
  std::vector<Alternative> all = {took("none", 100, 4), took("nd", 60, 4), took("dd", 90, 4)};
  all[0].as_it_was = true;
  EXPECT_EQ(compare(all, 1234, 4), 1U);
  EXPECT_DOUBLE_EQ(all[1].saved_seconds, 40);
  EXPECT_DOUBLE_EQ(all[1].saved_worker_seconds, 160);
  EXPECT_DOUBLE_EQ(all[2].saved_seconds, 10);
}

TEST(CompareTest, OfThoseThatTakeAsLongTheOneWithFewerWorkersIsRecommended) {
  std::vector<Alternative> all = {took("none", 100, 4), took("nd", 60, 4), took("none", 61, 3)};
  all[0].as_it_was = true;
  all[2].without = {"w3"};
  EXPECT_EQ(compare(all, 100, 4), 2U);
  EXPECT_EQ(all[2].name(), "none without w3");
  EXPECT_DOUBLE_EQ(all[2].saved_worker_seconds, 400 - 183);
  const std::string text = advice(all, 2);
  EXPECT_NE(text.find("none without w3: it saves 39.0 s of 100.0 s (39 %)"), std::string::npos)
      << text;
}

TEST(CompareTest, ALittleFasterIsNoReasonToChange) {
  std::vector<Alternative> all = {took("none", 98, 4), took("nd", 100, 4)};
  all[1].as_it_was = true;
  EXPECT_EQ(compare(all, 100, 4), std::nullopt);
  EXPECT_NE(advice(all, {}).find("as it was"), std::string::npos);
}

TEST(CompareTest, WhatCannotBePlayedIsNotRecommended) {
  std::vector<Alternative> all = {took("command", 0, 4), took("nd", 50, 4)};
  all[0].as_it_was = true;
  all[0].problem = "a program of your own is not asked";
  EXPECT_EQ(compare(all, 100, 4), 1U) << "compared with what was recorded";
  EXPECT_DOUBLE_EQ(all[1].saved_seconds, 50);
  EXPECT_DOUBLE_EQ(all[1].saved_worker_seconds, 200);
  all[1].problem = "it cannot begin";
  EXPECT_EQ(compare(all, 100, 4), std::nullopt);
}

TEST(CompareTest, JsonSaysWhatEachSavesAndWhichIsRecommended) {
  std::vector<Alternative> all = {took("none", 100, 4), took("nd", 64, 4), took("dd", 0, 2)};
  all[0].as_it_was = true;
  all[2].without = {"w2", "w3"};
  all[2].without_host = "b";
  all[2].problem = "it does not fit";
  const auto best = compare(all, 100, 4);
  const auto json = nlohmann::json::parse(to_json(all, best));
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["as_it_was"], true);
  EXPECT_EQ(json[1]["recommended"], true);
  EXPECT_DOUBLE_EQ(json[1]["saved_seconds"], 36);
  EXPECT_DOUBLE_EQ(json[1]["saved_worker_hours"], 4 * 36 / 3600.0);
  EXPECT_EQ(json[2]["recommended"], false);
  EXPECT_EQ(json[2]["problem"], "it does not fit");
  EXPECT_EQ(json[2]["without"], (nlohmann::json{"w2", "w3"}));
  EXPECT_EQ(json[2]["without_host"], "b");
  EXPECT_TRUE(json[2]["job_seconds"].is_null());
}

TEST(SomeWorkersTest, EachHasTheSpeedOfTheWorkerThatItIsLike) {
  class ByNumber final : public Speeds {
   public:
    BatchTime at(std::uint32_t worker, double, std::uint64_t) const override {
      BatchTime time;
      time.per_sample_s = worker;
      return time;
    }
    double noise(std::uint32_t worker, std::uint64_t) const override { return 10 + worker; }
  };
  const ByNumber all;
  const SomeWorkers some(all, {0, 2, 3, 0});
  EXPECT_EQ(some.at(1, 0, 0).per_sample_s, 2);
  EXPECT_EQ(some.at(3, 0, 0).per_sample_s, 0);
  EXPECT_EQ(some.noise(2, 0), 13);
}

// Seconds of two workers: the first takes `ms[i]` milliseconds for each of 10 samples, the other
// always 100.
shard_server::Series seconds_of(const std::vector<std::uint64_t>& ms) {
  shard_server::Series series;
  for (const std::uint64_t one : ms) {
    shard_server::Moment moment;
    moment.seconds = 1;
    for (std::uint32_t i = 0; i < 2; ++i) {
      shard_server::WorkerMoment w;
      w.member = {{'w', i}, Attempt{1}};
      w.batches = 1;
      w.samples = 10;
      w.compute_us = 10'000 * (i == 0 ? one : 100);
      moment.workers.push_back(w);
    }
    series.moments.push_back(std::move(moment));
  }
  return series;
}

TEST(SteadinessTest, AfterAFewSecondsOfOneSpeedEnoughIsMeasured) {
  EXPECT_FALSE(steadiness_of({}, 2).enough());
  EXPECT_FALSE(steadiness_of(seconds_of({100, 100, 100, 100, 100}), 2).enough());
  EXPECT_TRUE(
      steadiness_of(seconds_of({900, 300, 100, 101, 99, 100, 101, 100, 99, 100}), 2).enough())
      << "it warms up";
}

TEST(SteadinessTest, AWorkerWhoseSpeedVariesIsMeasuredLonger) {
  std::vector<std::uint64_t> ms = {100, 100};
  for (int i = 0; i < 5; ++i) ms.insert(ms.end(), {80, 120});
  const Steadiness some = steadiness_of(seconds_of(ms), 2);
  EXPECT_FALSE(some.enough());
  EXPECT_EQ(some.worker, "w0");
  for (int i = 0; i < 500; ++i) ms.insert(ms.end(), {80, 120});
  EXPECT_TRUE(steadiness_of(seconds_of(ms), 2).enough());
}

TEST(SteadinessTest, AWorkerThatReportedNothingIsNotKnown) {
  const std::vector<std::uint64_t> ms(20, 100);
  EXPECT_TRUE(steadiness_of(seconds_of(ms), 2).enough());
  const Steadiness found = steadiness_of(seconds_of(ms), 3);
  EXPECT_FALSE(found.enough());
  EXPECT_EQ(found.worker, "w2");
}

}  // namespace
}  // namespace antdt::fleet::what_if_test
