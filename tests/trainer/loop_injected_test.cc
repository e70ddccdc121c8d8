// What is injected, as the training thread feels it.
#include <gtest/gtest.h>

#include "trainer/injected/injected.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

const drill::Target kSelf{{'w', 1}, "a"};

// How long a batch that took no time by itself takes.
Duration batch(Injected& injected) {
  const SteadyClock clock;
  const MonoTime began = clock.now();
  injected.after_compute(began, 1, 1);
  return clock.now() - began;
}

TEST(Injected, WhatTheJobSaysHoldsFromTheBeginningOfTraining) {
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.delay = milliseconds(30);
  Injected injected(clock, {{rule}, kSelf, 1});
  EXPECT_FALSE(injected.training());
  injected.training_began();
  EXPECT_TRUE(injected.training());
  EXPECT_GE(batch(injected), milliseconds(30));
}

TEST(Injected, TheNewestOrderHoldsBesideWhatTheJobSays) {
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.delay = milliseconds(10);
  wire::Injected order{1, R"([{"workers": ["*"], "delay_us": 20000}])", 0, false};
  Injected injected(
      clock, {{rule}, kSelf, 1}, [&] { return order; }, kSelf, 1);
  injected.training_began();
  EXPECT_GE(batch(injected), milliseconds(30));
  order = {2, R"([{"workers": ["*"], "delay_us": 50000}])", 60000, false};
  EXPECT_GE(batch(injected), milliseconds(60));
}

TEST(Injected, AnOrderThatCannotBeReadDoesNothing) {
  const SteadyClock clock;
  wire::Injected order{1, "nonsense", 0, false};
  Injected injected(
      clock, {}, [&] { return order; }, kSelf, 1);
  injected.training_began();
  batch(injected);
  order = {2, R"([{"workers": ["w1"], "trace": "/nonexistent/t.csv"}])", 0, false};
  batch(injected);
}

// One that came later was not there when it killed.
TEST(Injected, AnOrderThatKillsOnceDoesNotKillWhoHearsOfItAgain) {
  const SteadyClock clock;
  wire::Injected order{1, R"([{"workers": ["w1"], "kill": true}])", 0, true};
  Injected later(
      clock, {}, [&] { return order; }, kSelf, 1);
  later.training_began();
  batch(later);
}

TEST(Injected, GettingTheDataTakesLonger) {
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.data_delay = milliseconds(30);
  Injected injected(clock, {{rule}, kSelf, 1});
  injected.training_began();
  const MonoTime began = clock.now();
  injected.after_data(began, 1);
  EXPECT_GE(clock.now() - began, milliseconds(30));
  EXPECT_EQ(injected.link()->delay(1000), Duration{}) << "its messages do not";
}

TEST(Injected, MessagesAreSlowFromTheBeginningOfTrainingOrAnOrder) {
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.latency = milliseconds(3);
  wire::Injected order{1, R"([{"workers": ["*"], "bandwidth_bytes": 1000000}])", 0, false};
  Injected injected(
      clock, {{rule}, kSelf, 1}, [&] { return order; }, kSelf, 1);
  const auto link = injected.link();
  EXPECT_EQ(link->delay(1000), Duration{});
  injected.training_began();
  EXPECT_EQ(link->delay(1000), milliseconds(3));
  batch(injected);
  EXPECT_EQ(link->delay(1000), milliseconds(4));
  order = {2, "[]", 0, false};
  batch(injected);
  EXPECT_EQ(link->delay(1000), milliseconds(3));
}

TEST(Injected, TheLeastPartOfTheTimeIsAskedForWhenItChanges) {
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.throttle = 0.5;
  wire::Injected order{1, R"([{"workers": ["*"], "throttle": 0.25}])", 0, false};
  std::vector<double> asked;
  Injected injected(
      clock, {{rule}, kSelf, 1}, [&] { return order; }, kSelf, 1,
      [&](double share) { asked.push_back(share); });
  injected.training_began();
  batch(injected);
  batch(injected);
  order = {2, "[]", 0, false};
  batch(injected);
  EXPECT_EQ(asked, (std::vector<double>{0.5, 0.25, 0.5}));
}

}  // namespace
}  // namespace antdt::trainer
