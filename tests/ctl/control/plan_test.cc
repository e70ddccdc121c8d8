#include "ctl/control/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace antdt::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<WorkerId> workers(std::size_t n) {
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < n; ++i) ids.push_back({'w', i});
  return ids;
}
std::vector<std::uint32_t> shares(const wire::Plan& plan) {
  std::vector<std::uint32_t> result;
  for (const auto& entry : plan.entries) result.push_back(share_of(entry));
  return result;
}
std::uint64_t sum(const std::vector<std::uint32_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}
std::uint32_t below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random() % limit);
}

// Every way to write `total` as n parts within the bounds.
void every_way(std::uint32_t total, std::size_t n, const Bounds& b,
               std::vector<std::uint32_t>& prefix,
               const std::function<void(const std::vector<std::uint32_t>&)>& visit) {
  if (prefix.size() == n) {
    if (total == 0) visit(prefix);
    return;
  }
  for (std::uint32_t part = 0; part <= total; part += b.multiple_of) {
    if (part < b.min || (b.max != 0 && part > b.max)) continue;
    prefix.push_back(part);
    every_way(total - part, n, b, prefix, visit);
    prefix.pop_back();
  }
}

// The sum of the parts' distances from exact proportions.
double miss(const std::vector<std::uint32_t>& parts, std::uint32_t total,
            const std::vector<double>& weights) {
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  double result = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double part =
        weight > 0 ? weights[i] / weight : 1.0 / static_cast<double>(weights.size());
    result += std::abs(parts[i] - total * part);
  }
  return result;
}

TEST(Distribute, EqualWeightsGiveEqualParts) {
  const std::vector<double> weights(4, 1.0);
  EXPECT_THAT(distribute(1024, weights, {}).value(), ElementsAre(256, 256, 256, 256));
}

TEST(Distribute, TheLargestRemaindersGetTheRest) {
  const std::vector<double> equal = {1, 1, 1};
  EXPECT_THAT(distribute(10, equal, {}).value(), ElementsAre(4, 3, 3));
  const std::vector<double> third = {1, 3, 3, 3};
  EXPECT_THAT(distribute(1024, third, {}).value(), ElementsAre(103, 307, 307, 307));
}

TEST(Distribute, WeightsThatAreAllZeroCountAsEqual) {
  const std::vector<double> weights = {0, 0};
  EXPECT_THAT(distribute(9, weights, {}).value(), ElementsAre(5, 4));
}

TEST(Distribute, ImpossibleBoundsAreNamed) {
  const std::vector<double> weights(4, 1.0);
  EXPECT_THAT(distribute(100, weights, {1, 26, 0}).error().message, HasSubstr("at least 26"));
  EXPECT_THAT(distribute(100, weights, {1, 0, 24}).error().message, HasSubstr("at most 24"));
  EXPECT_THAT(distribute(101, weights, {2, 0, 0}).error().message, HasSubstr("multiple of 2"));
  EXPECT_THAT(distribute(101, {}, {}).error().message, HasSubstr("at least one worker"));
}

TEST(Distribute, AgainstEveryWayItIsExactWithinBoundsAndNearTheProportions) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = 1 + below(random, 4);
    const std::uint32_t total = below(random, 25);
    const Bounds bounds{1 + below(random, 3), below(random, 5),
                        below(random, 3) == 0 ? 0 : 1 + below(random, 16)};
    std::vector<double> weights;
    for (std::size_t i = 0; i < n; ++i) {
      weights.push_back(below(random, 5) == 0 ? 0 : 0.1 + below(random, 50));
    }
    double best = INFINITY;
    std::vector<std::uint32_t> prefix;
    every_way(total, n, bounds, prefix,
              [&](const auto& parts) { best = std::min(best, miss(parts, total, weights)); });
    const auto got = distribute(total, weights, bounds);
    ASSERT_EQ(got.has_value(), best < INFINITY)
        << "total " << total << " n " << n << " of " << bounds.multiple_of << " min " << bounds.min
        << " max " << bounds.max;
    if (!got) continue;
    ASSERT_EQ(sum(*got), total);
    for (const std::uint32_t part : *got) {
      ASSERT_EQ(part % bounds.multiple_of, 0u);
      ASSERT_GE(part, bounds.min);
      if (bounds.max != 0) {
        ASSERT_LE(part, bounds.max);
      }
    }
    const double own = miss(*got, total, weights);
    if (bounds.min == 0 && bounds.max == 0) {
      ASSERT_NEAR(own, best, 1e-9);
    }
    // A bound that binds moves the quotas of the others.
    ASSERT_LE(own, best + 2.0 * bounds.multiple_of * static_cast<double>(n));
  }
}

TEST(Distribute, AFasterWorkerNeverGetsLess) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> weights;
    for (int i = 0; i < 6; ++i) weights.push_back(1 + below(random, 100));
    std::sort(weights.begin(), weights.end(), std::greater<>());
    const auto parts = distribute(200 + below(random, 200), weights, {1, 3, 120}).value();
    EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end(), std::greater<>()));
  }
}

TEST(Distribute, TenThousandWorkersAreNoTrouble) {
  std::vector<double> weights;
  for (int i = 0; i < 10000; ++i) weights.push_back(1 + i % 17);
  EXPECT_EQ(sum(distribute(1'000'000, weights, {1, 20, 150}).value()), 1'000'000u);
}

TEST(MakePlan, UnderSizeThereIsOneMicroBatch) {
  const std::vector<double> weights = {1, 3};
  BatchRules rules;
  rules.global_batch = 400;
  rules.adjust = Adjust::kSize;
  const auto plan = make_plan({7}, workers(2), weights, rules).value();
  EXPECT_EQ(plan.version.value, 7u);
  EXPECT_THAT(shares(plan), ElementsAre(100, 300));
  EXPECT_EQ(plan.entries[1].accumulation, 1u);
}

TEST(MakePlan, UnderAccumulationTheMicroBatchIsFixed) {
  BatchRules rules;
  rules.global_batch = 1024;
  rules.adjust = Adjust::kAccumulation;
  rules.base = accumulation_base(rules, 4);
  EXPECT_EQ(rules.base, 64u);
  const std::vector<double> weights = {1, 3, 3, 3};
  const auto plan = make_plan({1}, workers(4), weights, rules).value();
  EXPECT_EQ(sum(shares(plan)), 1024u);
  for (const auto& entry : plan.entries) EXPECT_EQ(entry.micro_batch, 64u);
  EXPECT_THAT(shares(plan), ElementsAre(64, 320, 320, 320));
}

TEST(MakePlan, UnderBothLargePartsAreCutIntoEqualMicroBatches) {
  BatchRules rules;
  rules.global_batch = 1000;
  rules.max = 300;
  const std::vector<double> weights = {1, 4};
  const auto plan = make_plan({1}, workers(2), weights, rules).value();
  EXPECT_THAT(shares(plan), ElementsAre(202, 798)) << "800 is no multiple of 3";
  EXPECT_EQ(plan.entries[0].accumulation, 1u);
  EXPECT_EQ(plan.entries[1].accumulation, 3u);
  EXPECT_EQ(plan.entries[1].micro_batch, 266u);
}

TEST(MakePlan, UnderBothEveryPlanIsExactAndWithinTheMaximum) {
  std::mt19937 random(5);
  int made = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::uint32_t n = 2 + below(random, 7);
    BatchRules rules;
    rules.multiple_of = 1 + below(random, 4);
    rules.global_batch = rules.multiple_of * (n + below(random, 1000));
    rules.max = rules.multiple_of + below(random, 100);
    std::vector<double> weights;
    for (std::size_t i = 0; i < n; ++i) weights.push_back(1 + below(random, 10));
    const auto plan = make_plan({1}, workers(n), weights, rules);
    if (!plan) {
      EXPECT_THAT(plan.error().message, HasSubstr("[batch]"));
      continue;
    }
    ++made;
    ASSERT_EQ(sum(shares(*plan)), rules.global_batch);
    for (const auto& entry : plan->entries) {
      ASSERT_LE(entry.micro_batch, rules.max);
      ASSERT_GE(entry.accumulation, 1u);
      ASSERT_EQ(entry.micro_batch % rules.multiple_of, 0u);
    }
  }
  EXPECT_EQ(made, 5000);
}

TEST(MakePlan, UnderNoneThePartsAreEqualWhateverTheWeights) {
  BatchRules rules;
  rules.global_batch = 65;
  rules.adjust = Adjust::kNone;
  const std::vector<double> weights = {1, 9};
  EXPECT_THAT(shares(make_plan({1}, workers(2), weights, rules).value()), ElementsAre(33, 32));
}

TEST(MakePlan, AMaximumBelowTheMultipleIsAnError) {
  BatchRules rules;
  rules.global_batch = 64;
  rules.multiple_of = 8;
  rules.max = 4;
  EXPECT_THAT(equal_plan({1}, workers(2), rules).error().message, HasSubstr("max = 4"));
}

TEST(ParseAdjust, NamesWhatItKnows) {
  EXPECT_EQ(parse_adjust("both").value(), Adjust::kBoth);
  EXPECT_THAT(parse_adjust("sometimes").error().message, HasSubstr("accumulation"));
}

}  // namespace
}  // namespace antdt::ctl
