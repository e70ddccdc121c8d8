// Fault injection and emulated devices: their pure parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/domain/domains.h"
#include "core/drill/drill_json.h"
#include "core/drill/emulation.h"
#include "core/drill/injection.h"
#include "core/drill/trace.h"

namespace antdt::drill {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::uint64_t kSeed = 7;
const Target kW1{{'w', 1}, "a"};

Rule of_all() {
  Rule rule;
  rule.workers = {"*"};
  return rule;
}
Rule slowed(double slowdown) {
  Rule rule = of_all();
  rule.slowdown = slowdown;
  return rule;
}
Injection only(const Rule& rule, const Target& target = kW1) { return {{rule}, target, kSeed}; }
// Whether a rule that doubles the time applies at `at`, in `step`.
bool holds(const Injection& injection, Duration at, std::uint64_t step = 0) {
  return injection.delay({at, milliseconds(1), step, 1}) == milliseconds(1);
}

TEST(Injection, DelaysAddUpAndTheSlowdownMultipliesAll) {
  Rule rule = slowed(3);
  rule.delay = milliseconds(10);
  rule.delay_per_sample = microseconds(100);
  // (20 + 10 + 50 * 0.1) * 3 = 105, of which 20 have passed.
  EXPECT_EQ(only(rule).delay({{}, milliseconds(20), 0, 50}), milliseconds(85));
  EXPECT_EQ(Injection({slowed(2), slowed(3)}, kW1, kSeed).delay({{}, milliseconds(1), 0, 1}),
            milliseconds(5));
}

Target in_domain(std::uint32_t worker, const std::string& host, const std::string& domain) {
  return {{'w', worker}, host, Attempt{1}, domain};
}
LinkDelay delay_of(const Rule& rule, const Target& from, const Target& to) {
  return only(rule, from).link_delay({}, 0, 1'000'000, &to);
}

TEST(Injection, ARuleAboutPairsIsForMessagesBetweenThoseThatItNames) {
  Rule rule;
  rule.domain = "east";
  rule.to_domain = "west";
  rule.latency = milliseconds(50);
  rule.bandwidth = 12'500'000;
  const Target east = in_domain(0, "a", "east"), west = in_domain(1, "b", "west"),
               nowhere = in_domain(2, "c", "");
  const LinkDelay far{{}, milliseconds(50), milliseconds(80)};
  EXPECT_EQ(delay_of(rule, east, west), far);
  EXPECT_EQ(delay_of(rule, east, east), LinkDelay());
  EXPECT_EQ(delay_of(rule, east, nowhere), LinkDelay());
  EXPECT_EQ(delay_of(rule, west, east), LinkDelay()) << "the other way";
  EXPECT_EQ(only(rule, east).link_delay({}, 0, 1000), Duration{}) << "nobody knows to whom";
  rule.both_ways = true;
  EXPECT_EQ(delay_of(rule, west, east), far);
  EXPECT_EQ(delay_of(rule, west, west), LinkDelay());
  EXPECT_EQ(delay_of(rule, nowhere, east), LinkDelay());
  rule.slowdown = 3;
  rule.kill = true;
  EXPECT_FALSE(holds(only(rule, west), {})) << "it is about messages alone";
  EXPECT_FALSE(only(rule, east).kills(Duration(-1), seconds(1)));
}

TEST(Injection, PairsAreNamedByWorkersHostsAndDomainsAlike) {
  const Target w0 = in_domain(0, "a", "x"), w1 = in_domain(1, "b", "x"),
               w2 = in_domain(2, "b", "y");
  const LinkDelay late{{}, milliseconds(5), {}};
  Rule rule;
  rule.latency = milliseconds(5);
  rule.workers = {"w0"};
  rule.to_workers = {"w1"};
  EXPECT_EQ(delay_of(rule, w0, w1), late);
  EXPECT_EQ(delay_of(rule, w0, w2), LinkDelay());
  rule.to_workers = {"*"};
  rule.to_host = "b";
  EXPECT_EQ(delay_of(rule, w0, w2), late);
  EXPECT_EQ(delay_of(rule, w0, w0), LinkDelay());
  rule.to_domain = "y";
  EXPECT_EQ(delay_of(rule, w0, w1), LinkDelay()) << "all that are given must match";
  EXPECT_EQ(delay_of(rule, w0, w2), late);
}

TEST(Injection, ARuleForAllMessagesHoldsTheThreadBackWhoeverGetsThem) {
  Rule rule = of_all();
  rule.latency = milliseconds(3);
  EXPECT_EQ(delay_of(rule, kW1, in_domain(2, "b", "")), (LinkDelay{milliseconds(3), {}, {}}));
  EXPECT_EQ(only(rule).link_delay({}, 0, 1000), milliseconds(3));
}

TEST(Domains, AProcessIsWhereItIsNamedElseWhereItsHostIs) {
  const auto domains = parse_domains(R"({"domain": [
    {"name": "east", "hosts": ["a", "b"], "workers": []},
    {"name": "west", "hosts": ["c"], "workers": ["w1", "s0"]}]})");
  ASSERT_TRUE(domains) << domains.error().message;
  EXPECT_EQ(domains->of({'w', 0}, "b"), "east");
  EXPECT_EQ(domains->of({'w', 1}, "b"), "west");
  EXPECT_EQ(domains->of({'s', 0}, "d"), "west");
  EXPECT_EQ(domains->of({'w', 0}, "d"), "");
  EXPECT_EQ(parse_domains("{}")->all().size(), 0U) << "a job of an earlier release";
}

TEST(Injection, HoldsFromItsBeginningUntilItsEnd) {
  Rule rule = slowed(2);
  rule.from = seconds(5);
  rule.until = seconds(8);
  const Injection injection = only(rule);
  EXPECT_FALSE(holds(injection, milliseconds(4999)));
  EXPECT_TRUE(holds(injection, seconds(5)));
  EXPECT_TRUE(holds(injection, milliseconds(7999)));
  EXPECT_FALSE(holds(injection, seconds(8)));
}

TEST(Injection, WithoutRulesNothingIsDelayed) {
  EXPECT_EQ(Injection({}, kW1, kSeed).delay({seconds(1), milliseconds(5), 3, 100}), Duration{});
  EXPECT_TRUE(only(Rule{}).empty()) << "a rule that names nobody";
}

TEST(Injection, ARuleAppliesToNamedProcessesToAHostOrToBoth) {
  const Target w2{{'w', 2}, "b"};
  const Target s1{{'s', 1}, "a"};
  const auto who = [&](std::vector<std::string> workers, std::string host) {
    Rule rule;
    rule.workers = std::move(workers);
    rule.host = std::move(host);
    std::string named;
    if (names(rule, kW1)) named += "w1 ";
    if (names(rule, w2)) named += "w2 ";
    if (names(rule, s1)) named += "s1 ";
    return named;
  };
  EXPECT_EQ(who({"w1"}, ""), "w1 ");
  EXPECT_EQ(who({"*"}, ""), "w1 w2 ");
  EXPECT_EQ(who({"s1", "w2"}, ""), "w2 s1 ");
  EXPECT_EQ(who({}, "a"), "w1 s1 ");
  EXPECT_EQ(who({"*"}, "a"), "w1 ");
  EXPECT_EQ(who({"w1"}, "b"), "");
  EXPECT_EQ(who({}, ""), "");
}

TEST(Injection, AnInjectionHoldsForAPartOfEachWindow) {
  Rule rule = slowed(2);
  rule.every = seconds(10);
  rule.lasts = seconds(1);
  const Injection injection = only(rule);
  std::set<int> beginnings;
  for (int window = 0; window < 50; ++window) {
    int held = 0;
    int first = -1;
    for (int tenth = 0; tenth < 100; ++tenth) {
      if (!holds(injection, seconds(10 * window) + milliseconds(100 * tenth))) continue;
      if (first < 0) first = tenth;
      ++held;
    }
    EXPECT_EQ(held, 10) << window;
    beginnings.insert(first);
  }
  EXPECT_GT(beginnings.size(), 20U) << "the moment is a random one";
}

TEST(Injection, ChancePicksWindowsOrSteps) {
  Rule rule = slowed(2);
  rule.chance = 0.1;
  const Injection by_step = only(rule);
  rule.every = seconds(1);
  const Injection by_window = only(rule);
  int steps = 0;
  int windows = 0;
  for (int i = 0; i < 10000; ++i) {
    steps += holds(by_step, {}, static_cast<std::uint64_t>(i)) ? 1 : 0;
    windows += holds(by_window, seconds(i)) ? 1 : 0;
    ASSERT_EQ(holds(by_window, seconds(i)), holds(by_window, seconds(i) + milliseconds(999)));
  }
  EXPECT_NEAR(steps, 1000, 100);
  EXPECT_NEAR(windows, 1000, 100);
}

TEST(Injection, WorkersAreSlowAtTimesOfTheirOwnAndThoseOfAHostTogether) {
  Rule rule = slowed(2);
  rule.every = seconds(1);
  rule.chance = 0.5;
  const auto times = [&](const Target& target, std::uint64_t seed) {
    const Injection injection({rule}, target, seed);
    std::vector<bool> all;
    for (int i = 0; i < 64; ++i) all.push_back(holds(injection, seconds(i)));
    return all;
  };
  const Target w2{{'w', 2}, "a"};
  EXPECT_EQ(times(kW1, kSeed), times(kW1, kSeed));
  EXPECT_NE(times(kW1, kSeed), times(kW1, kSeed + 1));
  EXPECT_NE(times(kW1, kSeed), times(w2, kSeed));
  rule.host = "a";
  EXPECT_EQ(times(kW1, kSeed), times(w2, kSeed));
}

TEST(Injection, AKillWithoutWindowsHitsTheFirstAttemptOnce) {
  Rule rule = of_all();
  rule.kill = true;
  rule.from = seconds(5);
  const Injection first = only(rule);
  EXPECT_FALSE(first.kills({}, milliseconds(4999)));
  EXPECT_TRUE(first.kills(milliseconds(4999), milliseconds(5001)));
  EXPECT_FALSE(first.kills(seconds(5), seconds(100)));
  EXPECT_FALSE(only(rule, {{'w', 1}, "a", Attempt{2}}).kills({}, seconds(100)));
  rule.from = {};
  EXPECT_TRUE(only(rule).kills(Duration(-1), {})) << "at the very start";
}

TEST(Injection, AKillWithWindowsComesInEachThatIsPicked) {
  Rule rule = of_all();
  rule.kill = true;
  rule.every = seconds(60);
  rule.lasts = seconds(1);
  rule.chance = 0.5;
  const Injection injection = only(rule, {{'w', 1}, "a", Attempt{3}});
  int kills = 0;
  for (int s = 0; s < 60 * 200; ++s) kills += injection.kills(seconds(s), seconds(s + 1)) ? 1 : 0;
  EXPECT_NEAR(kills, 100, 25);
  EXPECT_TRUE(injection.kills({}, seconds(60 * 200)));
}

constexpr auto kTrace = R"(,worker,gpu,time,batch_time_norm
0,0,25,1,100
1,1,25,1,50
2,0,25,21,200
3,1,25,11,75
)";

TEST(Trace, GivesEachWorkersTimesOverTheLeastOfAll) {
  const auto trace = Trace::parse(kTrace);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(trace->slowdowns(0), testing::ElementsAre(2, 4));
  EXPECT_THAT(trace->slowdowns(1), testing::ElementsAre(1, 1.5));
  EXPECT_THAT(trace->slowdowns(2), testing::ElementsAre(2, 4)) << "the third is the first again";
}

TEST(Trace, AnUnreadableLineIsNamedWithItsNumber) {
  const auto problem = [](const char* text) {
    const auto trace = Trace::parse(text);
    return trace ? "" : trace.error().message;
  };
  EXPECT_THAT(problem("a,b\n1,2\n"), HasSubstr("line 1: a trace needs the columns worker, time"));
  EXPECT_THAT(problem("worker,time,batch_time_norm\n1,2\n"), HasSubstr("line 2: '1,2'"));
  EXPECT_THAT(problem("worker,time,batch_time_norm\n1,2,0\n"), HasSubstr("line 2"));
  EXPECT_THAT(problem("worker,time,batch_time_norm\n1,nan,3\n"), HasSubstr("line 2"));
  EXPECT_THAT(problem("worker,time,batch_time_norm\r\n"), HasSubstr("no batch"));
}

TEST(Injection, ATraceIsReplayedStepByStepOrInTime) {
  Rule rule = of_all();
  rule.trace = "t.csv";
  const Traces traces{{"t.csv", std::make_shared<const Trace>(*Trace::parse(kTrace))}};
  const auto factor = [&](Duration at, std::uint64_t step) {
    const Injection injection({rule}, {{'w', 2}, "a"}, kSeed, traces);
    return 1 + to_seconds(injection.delay({at, seconds(1), step, 1}));
  };
  EXPECT_DOUBLE_EQ(factor({}, 0), 2);
  EXPECT_DOUBLE_EQ(factor({}, 1), 4);
  EXPECT_DOUBLE_EQ(factor({}, 2), 2) << "it begins again";
  rule.trace_every = seconds(10);
  EXPECT_DOUBLE_EQ(factor(seconds(9), 5), 2);
  EXPECT_DOUBLE_EQ(factor(seconds(10), 5), 4);
}

TEST(Emulation, TimeIsFlatThenLinearUpToTheMemory) {
  Device device;
  device.flat = milliseconds(2);
  device.flat_until = 8;
  device.per_sample = microseconds(250);
  device.memory = 16;
  EXPECT_EQ(device.time(1), milliseconds(2));
  EXPECT_EQ(device.time(8), milliseconds(2));
  EXPECT_EQ(device.time(12), milliseconds(3));
  EXPECT_TRUE(device.fits(16));
  EXPECT_FALSE(device.fits(17));
}

TEST(Emulation, NoiseHasTheDeviationThatWasAskedForAndIsSeeded) {
  Emulation emulation;
  emulation.noise = 0.1;
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20000;
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const double noise = emulation.noise_of(kSeed, {'w', 3}, n);
    sum += noise;
    squares += noise * noise;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 1, 0.005);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 0.1, 0.005);
  EXPECT_EQ(emulation.noise_of(kSeed, {'w', 3}, 5), emulation.noise_of(kSeed, {'w', 3}, 5));
  EXPECT_NE(emulation.noise_of(kSeed, {'w', 3}, 5), emulation.noise_of(kSeed, {'w', 4}, 5));
  emulation.noise = 0;
  EXPECT_EQ(emulation.noise_of(kSeed, {'w', 3}, 5), 1);
}

constexpr auto kConfig = R"({
  "emulated": {"noise": 0.2, "parameters": 64, "device": [
    {"class": "fast", "workers": ["w1"], "flat_us": 2000, "flat_until": 8, "per_sample_us": 250,
     "memory": 256},
    {"class": "slow", "workers": [], "flat_us": 8000}]},
  "inject": [{"workers": ["w1"], "slowdown": 2.0, "delay_us": 1500, "delay_per_sample_us": 2,
              "from_ms": 100, "until_ms": 200, "every_ms": 50, "for_ms": 5, "chance": 0.25,
              "data_delay_us": 40, "latency_us": 50, "bandwidth_bytes": 1000, "throttle": 0.5},
             {"host": "b", "kill": true, "trace": "t.csv", "trace_every_ms": 7}]})";

TEST(DrillJson, ReadsWhatTheLauncherWrote) {
  const auto rules = parse_rules(kConfig);
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 2U);
  Rule first;
  first.workers = {"w1"};
  first.slowdown = 2;
  first.delay = microseconds(1500);
  first.delay_per_sample = microseconds(2);
  first.from = milliseconds(100);
  first.until = milliseconds(200);
  first.every = milliseconds(50);
  first.lasts = milliseconds(5);
  first.chance = 0.25;
  first.data_delay = microseconds(40);
  first.latency = microseconds(50);
  first.bandwidth = 1000;
  first.throttle = 0.5;
  EXPECT_EQ(rules->at(0), first);
  Rule second;
  second.host = "b";
  second.kill = true;
  second.trace = "t.csv";
  second.trace_every = milliseconds(7);
  EXPECT_EQ(rules->at(1), second);

  const auto emulation = parse_emulation(kConfig);
  ASSERT_TRUE(emulation) << emulation.error().message;
  EXPECT_EQ(emulation->noise, 0.2);
  EXPECT_EQ(emulation->parameters, 64U);
  EXPECT_EQ(*emulation->device_of({'w', 1}),
            (Device{"fast", {"w1"}, milliseconds(2), 8, microseconds(250), 256}));
  EXPECT_EQ(emulation->device_of({'w', 0})->name, "slow");
  EXPECT_EQ(Emulation().device_of({'w', 0}), nullptr);
}

TEST(DrillJson, MissingValuesHaveDefaultsAndInvalidOnesAreErrors) {
  EXPECT_TRUE(parse_rules("{}")->empty());
  EXPECT_TRUE(parse_emulation("{}")->devices.empty());
  EXPECT_FALSE(parse_rules("{"));
  EXPECT_FALSE(parse_rules(R"({"inject": [{"slowdown": "much"}]})"));
  EXPECT_FALSE(parse_emulation(R"({"emulated": {"parameters": -1}})"));
  EXPECT_THAT(read_traces({[] {
                Rule rule = of_all();
                rule.trace = "/nonexistent/t.csv";
                return rule;
              }()})
                  .error()
                  .message,
              HasSubstr("/nonexistent/t.csv"));
}

}  // namespace
}  // namespace antdt::drill
