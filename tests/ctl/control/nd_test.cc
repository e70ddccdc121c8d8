#include "ctl/control/solutions/nd.h"

#include <gtest/gtest.h>

#include <variant>

#include "tests/ctl/control/virtual_cluster.h"
#include "tests/sanitized.h"

namespace antdt::ctl {
namespace {

using testing::VirtualCluster;

VirtualCluster::Options options_of(double window_s, std::uint64_t seed = 1) {
  VirtualCluster::Options options;
  options.window_s = window_s;
  options.seed = seed;
  return options;
}

// The shortest step that parts of any size could give.
double ideal_step_s(const VirtualCluster& cluster, double global_batch) {
  double low = 0;
  double high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    double total = 0;
    for (const auto& v : cluster.workers) {
      total += std::max(0.0, (middle / v.slowdown - v.fixed_s) / v.per_sample_s);
    }
    (total < global_batch ? low : high) = middle;
  }
  return high;
}

struct NoiseCase {
  double window_s;
  double step_s;
  bool lognormal;
};
class NoiseTest : public ::testing::TestWithParam<NoiseCase> {};

TEST_P(NoiseTest, TenThousandNoisyStepsWithoutASingleAction) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    auto options = options_of(GetParam().window_s, seed);
    options.workers = 8;
    options.lognormal = GetParam().lognormal;
    VirtualCluster cluster(options);
    for (auto& worker : cluster.workers) worker.per_sample_s = GetParam().step_s / 128;
    while (cluster.steps < all_or_some(10000U, 1000U)) cluster.step();
    ASSERT_TRUE(cluster.actions.empty()) << "seed " << seed << ": " << cluster.actions[0].reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, NoiseTest,
                         ::testing::Values(NoiseCase{1, 0.02, false}, NoiseCase{1, 0.1, false},
                                           NoiseCase{1, 0.1, true}, NoiseCase{1, 0.5, false},
                                           NoiseCase{2, 0.1, true}, NoiseCase{4, 1.0, false},
                                           NoiseCase{10, 0.1, false}, NoiseCase{10, 0.1, true},
                                           NoiseCase{10, 1.0, true}));

class SlowdownTest : public ::testing::TestWithParam<double> {};

TEST_P(SlowdownTest, ASlowdownOfOneAndAHalfIsActedOnWithinTheWindowPlusTwoSeconds) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto options = options_of(GetParam(), seed);
    options.workers = 8;
    VirtualCluster cluster(options);
    for (auto& worker : cluster.workers) worker.per_sample_s = 0.1 / 128;
    cluster.run_for(6 * options.window_s);
    cluster.workers[seed % 8].slowdown = 1.5;
    const auto acted = [&] { return !cluster.actions.empty(); };
    ASSERT_GE(cluster.run_until(acted, options.window_s + 2), 0) << "seed " << seed;
    EXPECT_EQ(cluster.actions[0].target, to_string(testing::w(seed % 8)));
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, SlowdownTest, ::testing::Values(1.0, 2.0, 5.0, 10.0));

class ThirdTest : public ::testing::TestWithParam<double> {};

TEST_P(ThirdTest, OneOfFourAtAThirdIsBalancedInThreeActionsAtMostAndGetsItsPartBack) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const double window = GetParam();
    VirtualCluster cluster(options_of(window, seed));
    for (auto& worker : cluster.workers) worker.per_sample_s = 2.5e-4;
    cluster.run_for(4 * window);
    cluster.workers[3].slowdown = 3;
    cluster.run_for(10 * window);
    EXPECT_GE(cluster.actions.size(), 1u);
    EXPECT_LE(cluster.actions.size(), 3u);
    EXPECT_NEAR(cluster.share(3), 102, 12);
    EXPECT_LT(cluster.step_s(), 1.1 * ideal_step_s(cluster, 1024));
    const std::size_t before = cluster.actions.size();
    cluster.workers[3].slowdown = 1;
    cluster.run_for(10 * window);
    EXPECT_LE(cluster.actions.size(), before + 3);
    EXPECT_NEAR(cluster.share(3), 256, 30);
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, ThirdTest, ::testing::Values(1.0, 4.0, 10.0));

struct FixedCost {
  double fixed_ms;
  double slowdown;
};
class FixedCostTest : public ::testing::TestWithParam<FixedCost> {};

TEST_P(FixedCostTest, ConvergesWithoutSwinging) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    auto options = options_of(2, seed);
    options.noise = 0.05;
    VirtualCluster cluster(options);
    for (auto& worker : cluster.workers) worker.fixed_s = GetParam().fixed_ms / 1000;
    cluster.run_for(10);
    cluster.workers[0].slowdown = GetParam().slowdown;
    std::uint32_t least = cluster.share(0);
    for (int i = 0; i < 120; ++i) {
      cluster.run_for(0.5);
      ASSERT_LE(cluster.share(0), least + 16) << "a part that was taken away came back";
      least = std::min(least, cluster.share(0));
    }
    EXPECT_LT(cluster.step_s(), 1.09 * ideal_step_s(cluster, 1024)) << "seed " << seed;
    EXPECT_LE(cluster.actions.size(), 4u) << "seed " << seed;
    cluster.workers[0].slowdown = 1;
    cluster.run_for(60);
    EXPECT_LT(cluster.step_s(), 1.09 * ideal_step_s(cluster, 1024)) << "back, seed " << seed;
    EXPECT_LE(cluster.actions.size(), 8u) << "back, seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Costs, FixedCostTest,
                         ::testing::Values(FixedCost{50, 3}, FixedCost{128, 2}, FixedCost{256, 2},
                                           FixedCost{128, 3}, FixedCost{20, 8}));

// Its exact part would be 4.49 samples, and a fifth sample would make every step 8 ms longer.
TEST(Nd, AVerySlowWorkersPartIsNotRoundedUp) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto options = options_of(1, seed);
    options.workers = 8;
    options.global_batch = 256;
    options.noise = 0.02;
    VirtualCluster cluster(options);
    for (auto& worker : cluster.workers) worker.per_sample_s = 2e-3;
    cluster.workers[0].slowdown = 8;
    cluster.run_for(20);
    EXPECT_EQ(cluster.share(0), 4) << "seed " << seed;
    EXPECT_LE(cluster.step_s(), 0.0741) << "seed " << seed;
  }
}

TEST(Nd, StepsThatAreLongerThanTheWindowsAreBalancedToo) {
  auto options = options_of(10);
  options.noise = 0.02;
  VirtualCluster cluster(options);
  for (auto& worker : cluster.workers) worker.per_sample_s = 60.0 / 256;
  cluster.workers[3].slowdown = 3;
  cluster.run_for(3600);
  EXPECT_LE(cluster.actions.size(), 3u);
  EXPECT_NEAR(cluster.share(3), 102, 12);
}

TEST(Nd, BatchesThatMayNotChangeAreLeftAlone) {
  auto options = options_of(1);
  options.adjust = Adjust::kNone;
  VirtualCluster cluster(options);
  cluster.run_for(4);
  cluster.workers[1].slowdown = 4;
  cluster.run_for(20);
  EXPECT_TRUE(cluster.actions.empty());
}

TEST(Nd, NegligibleDifferencesMoveNoSamples) {
  const auto actions_where_all_wait = [](double wait_s) {
    auto options = options_of(1);
    options.all_wait_s = wait_s;
    VirtualCluster cluster(options);
    for (auto& worker : cluster.workers) worker.per_sample_s = 4e-6;
    cluster.workers[1].slowdown = 3;  // 3 ms where the others take 1 ms
    cluster.run_for(20);
    return cluster.actions.size();
  };
  EXPECT_EQ(actions_where_all_wait(0.1), 0u);
  EXPECT_GT(actions_where_all_wait(0.001), 0u);
}

TEST(Nd, TheReasonNamesMeasurementChangeAndExpectation) {
  auto options = options_of(2);
  options.noise = 0;
  VirtualCluster cluster(options);
  for (auto& worker : cluster.workers) worker.slowdown = 0.5;
  cluster.workers[3].slowdown = 1.5;
  ASSERT_GE(cluster.run_until([&] { return !cluster.actions.empty(); }, 10), 0);
  EXPECT_EQ(cluster.actions[0].target, "w3");
  EXPECT_EQ(cluster.actions[0].reason,
            "w3 computes 3.0x slower than its peers (667 vs 2000 samples/s over 2.0 s, compute): "
            "its batch goes from 256 to 102; step expected 384 ms -> 154 ms");
}

TEST(Nd, HardwareOfThreeSpeedsIsBalanced) {
  auto options = options_of(2);
  options.workers = 8;
  options.global_batch = 2048;
  options.noise = 0.05;
  VirtualCluster cluster(options);
  for (std::size_t i = 0; i < 8; ++i) {
    cluster.workers[i].per_sample_s = i < 3 ? 4e-3 : i < 6 ? 1.6e-3 : 1e-3;
  }
  cluster.run_for(40);
  EXPECT_LT(cluster.step_s(), 1.08 * ideal_step_s(cluster, 2048));
  EXPECT_LE(cluster.actions.size(), 3u);
}

TEST(Nd, WhatTheMemoryOfADeviceDoesNotHoldIsNotWished) {
  ClusterView view;
  view.rules.adjust = Adjust::kSize;
  view.rules.global_batch = 80;
  for (std::uint32_t i = 0; i < 2; ++i) {
    WorkerView& worker = view.workers.emplace_back();
    worker.member = {{'w', i}, Attempt{1}};
    worker.share = 40;
    worker.measured = true;
    worker.speed_transient = i == 0 ? 100 : 300;
    worker.batch_s = worker.share / worker.speed_transient;
  }
  for (const std::uint32_t memory : {40U, 0U}) {
    view.bounds.memory = {{WorkerId{'w', 1}, memory}};
    solutions::Nd nd;
    EXPECT_TRUE(nd.decide(view, {}).actions.empty());
    EXPECT_EQ(nd.decide(view, {}).actions.size(), memory == 0 ? 1U : 0U);
  }
}

TEST(NdLines, ALineOnWhichSamplesCostNothingDoesNotGiveOneWorkerAllTheWork) {
  ClusterView view;
  view.rules.adjust = Adjust::kSize;
  for (std::uint32_t i = 0; i < 8; ++i) {
    WorkerView& worker = view.workers.emplace_back();
    worker.member = {{'w', i}, Attempt{1}};
    worker.share = i == 0 ? 1 : 36;
    worker.measured = true;
    worker.batch_s = i == 0 ? 0.005 : 0.08;
    worker.speed_transient = worker.share / worker.batch_s;
    worker.speed_error = 0.01;
    view.rules.global_batch += worker.share;
  }
  view.workers[0].fit = BatchTimeFit{0.005, 1e-6};
  solutions::Nd nd;
  const MonoTime now = MonoTime{} + std::chrono::hours(1);
  EXPECT_TRUE(nd.decide(view, now).actions.empty()) << "seen once it may be chance";
  const Decision decision = nd.decide(view, now);
  ASSERT_EQ(decision.actions.size(), 1U);
  const auto* const batches = std::get_if<AdjustBatch>(&decision.actions[0]);
  ASSERT_NE(batches, nullptr);
  EXPECT_GT(batches->shares[0].samples, 3U);
  EXPECT_LT(batches->shares[0].samples, 60U);
}

}  // namespace
}  // namespace antdt::ctl
