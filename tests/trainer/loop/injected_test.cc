// Tests of fault injection in the training thread.
#include "trainer/injected/injected.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

const drill::Target kSelf{{'w', 1}, "a"};

// How long a batch takes that needs no time without injection.
Duration batch(Injected& injected) {
  const SteadyClock clock;
  const MonoTime began = clock.now();
  injected.after_compute(began, 1, 1);
  return clock.now() - began;
}

TEST(Injected, InjectionsOfTheJobHoldFromTheBeginningOfTraining) {
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

// The order's first rule could be read, and would slow everything that is measured here; the second
// one cannot. The rules of the job itself go on.
TEST(Injected, AnOrderThatCannotBeReadDoesNothing) {
  constexpr const char* kFelt =
      R"({"workers": ["*"], "delay_us": 400000, "latency_us": 9000, "throttle": 0.25})";
  const std::vector<std::string> unreadable = {
      "nonsense",
      fmt::format(R"([{}, {{"workers": ["w1"], "delay_us": "long"}}])", kFelt),
      fmt::format(R"([{}, {{"workers": ["w1"], "trace": "/nonexistent/t.csv"}}])", kFelt),
  };
  const SteadyClock clock;
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.latency = milliseconds(3);
  rule.throttle = 0.5;
  wire::Injected order;
  std::vector<double> asked;
  Injected injected(
      clock, {{rule}, kSelf, 1}, [&] { return order; }, kSelf, 1,
      [&](double share) { asked.push_back(share); });
  injected.training_began();
  for (const std::string& rules : unreadable) {
    order = {order.number + 1, rules, 0, false};
    testing::internal::CaptureStderr();
    EXPECT_LT(batch(injected), milliseconds(400)) << rules;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::StartsWith("what is to be injected is not: "))
        << rules;
    EXPECT_EQ(injected.link()->delay(1000), milliseconds(3)) << rules;
    EXPECT_EQ(asked, std::vector<double>{0.5}) << rules;
  }
  // The same rule alone takes effect.
  order = {order.number + 1, fmt::format("[{}]", kFelt), 0, false};
  EXPECT_GE(batch(injected), milliseconds(400));
  EXPECT_EQ(injected.link()->delay(1000), milliseconds(12));
  EXPECT_EQ(asked, (std::vector<double>{0.5, 0.25}));
}

// A process that came after the order was not there when it killed.
TEST(Injected, AnOrderThatKillsOnceDoesNotKillWhoHearsOfItAgain) {
  const SteadyClock clock;
  wire::Injected order{
      1, R"([{"workers": ["w1"], "kill": true}, {"workers": ["w1"], "delay_us": 30000}])", 0, true};
  Injected later(
      clock, {}, [&] { return order; }, kSelf, 1);
  later.training_began();
  EXPECT_GE(batch(later), milliseconds(30)) << "it has heard of the order";
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

TEST(Injected, ADomainIsThatOfTheConfigurationAndMembersAreKnownByRank) {
  const SteadyClock clock;
  auto injected = Injected::of_job(clock, R"({"job": {"seed": 1},
    "domain": [{"name": "east", "hosts": [], "workers": ["w1"]}],
    "inject": [{"domain": "east", "to_domain": "west", "latency_us": 50000}]})",
                                   kSelf, {}, {});
  ASSERT_TRUE(injected) << injected.error().message;
  injected->training_began();
  const auto link = injected->link();
  EXPECT_EQ(link->delay(0, 10), drill::LinkDelay()) << "nobody is known yet";
  link->know({{{'w', 0}, "a", Attempt{1}, "west"}, {{'w', 1}, "a", Attempt{1}, "east"}});
  EXPECT_EQ(link->delay(0, 10).latency, milliseconds(50));
  EXPECT_EQ(link->delay(1, 10), drill::LinkDelay());
  EXPECT_EQ(link->delay(10), Duration{});
}

}  // namespace
}  // namespace antdt::trainer
