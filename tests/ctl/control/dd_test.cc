#include "ctl/control/solutions/dd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/control/batch_search.h"
#include "ctl/control/curve_book.h"
#include "ctl/monitor/device_model.h"
#include "tests/ctl/control/virtual_cluster.h"
#include "tests/sanitized.h"

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;
using testing::VirtualCluster;
using testing::VirtualDevice;

// Speeds 1 : 2.5 : 4, with a memory limit that matters.
const VirtualDevice kSlow{"slow", 256, 0.008, 8, 0.001};
const VirtualDevice kMiddle{"middle", 128, 0.0032, 8, 0.0004};
const VirtualDevice kFast{"fast", 64, 0.002, 8, 0.00025};

VirtualCluster::Options three_classes(double noise, std::uint64_t seed = 1) {
  VirtualCluster::Options options;
  options.workers = 8;
  options.global_batch = 2048;
  options.window_s = 2;
  options.noise = noise;
  options.seed = seed;
  options.solution = "dd";
  options.devices = {kSlow, kSlow, kSlow, kMiddle, kMiddle, kMiddle, kFast, kFast};
  return options;
}

BatchClass truth(const VirtualDevice& device, std::uint32_t members) {
  BatchClass c;
  c.members = members;
  for (std::uint32_t b = 1; b <= device.memory; ++b)
    c.seconds.push_back(device.flat_s + device.per_sample_s * (b - std::min(b, device.flat_until)));
  return c;
}

double ideal_s(std::uint32_t global_batch) {
  return search_batches(std::vector{truth(kSlow, 3), truth(kMiddle, 3), truth(kFast, 2)},
                        global_batch, 1)
      ->step_s;
}

class NoisyDevices : public ::testing::TestWithParam<double> {};

TEST_P(NoisyDevices, ThreeClassesReachTheShortestStepAndNoMicroBatchExceedsItsMemory) {
  for (std::uint64_t seed = 0; seed < all_or_some(5U, 1U); ++seed) {
    VirtualCluster cluster(three_classes(GetParam(), seed));
    cluster.run_for(120);
    EXPECT_LT(cluster.step_s(), 1.04 * ideal_s(2048)) << "seed " << seed;
    EXPECT_EQ(cluster.out_of_memory, 0);
    const std::size_t actions = cluster.actions.size();
    EXPECT_LE(actions, 14u);
    cluster.run_for(600);
    EXPECT_LE(cluster.actions.size(), actions + 2) << "it does not come to rest";
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, NoisyDevices, ::testing::Values(0.0, 0.03, 0.1));

TEST(Dd, AClassThatBecomesSlowerIsMeasuredAndSolvedAgain) {
  VirtualCluster cluster(three_classes(0.03));
  cluster.run_for(120);
  for (std::size_t i = 6; i < 8; ++i) cluster.workers[i].slowdown = 2;
  const double before_s = cluster.step_s();
  cluster.run_for(120);
  VirtualDevice slower = kFast;
  slower.flat_s *= 2;
  slower.per_sample_s *= 2;
  const auto ideal =
      search_batches(std::vector{truth(kSlow, 3), truth(kMiddle, 3), truth(slower, 2)}, 2048, 1);
  EXPECT_LT(cluster.step_s(), 1.05 * ideal->step_s);
  EXPECT_LT(cluster.step_s(), 0.8 * before_s);
}

TEST(Dd, OneSlowWorkerAmongEqualOnesIsNoReasonToAct) {
  auto options = three_classes(0.03);
  options.devices.assign(8, kSlow);
  VirtualCluster cluster(options);
  cluster.run_for(120);
  const std::size_t actions = cluster.actions.size();
  cluster.workers[2].slowdown = 3;
  cluster.run_for(60);
  EXPECT_EQ(cluster.actions.size(), actions);
}

TEST(Dd, WhereMicroBatchesMayNotBeCutThePartsFollowTheCurves) {
  auto options = three_classes(0.03);
  options.adjust = Adjust::kSize;
  options.global_batch = 640;
  VirtualCluster cluster(options);
  cluster.run_for(120);
  auto classes = std::vector{truth(kSlow, 3), truth(kMiddle, 3), truth(kFast, 2)};
  for (BatchClass& c : classes) c.most_accumulation = 1;
  const auto ideal = search_batches(classes, 640, 1);
  EXPECT_LT(cluster.step_s(), 1.06 * ideal->step_s);
  EXPECT_EQ(cluster.out_of_memory, 0);
}

TEST(Dd, FixedMicroBatchesAreAccumulatedAsTheCurvesSay) {
  auto options = three_classes(0.03);
  options.adjust = Adjust::kAccumulation;
  VirtualCluster cluster(options);
  cluster.run_for(120);
  for (const wire::PlanEntry& e : cluster.in_force().entries) EXPECT_EQ(e.micro_batch, 64u);
  EXPECT_LT(cluster.step_s(), 1.35 * ideal_s(2048));
}

TEST(Dd, BatchesThatMayNotChangeAreLeftAlone) {
  auto options = three_classes(0.03);
  options.adjust = Adjust::kNone;
  for (VirtualDevice& d : options.devices) d.memory = 256;
  VirtualCluster cluster(options);
  cluster.run_for(30);
  EXPECT_TRUE(cluster.actions.empty());
}

TEST(Dd, TheReasonSaysWhatEachClassIsToDo) {
  VirtualCluster cluster(three_classes(0));
  cluster.run_for(120);
  ASSERT_FALSE(cluster.actions.empty());
  EXPECT_THAT(cluster.actions.front().reason, HasSubstr("measures how long micro-batches take"));
  EXPECT_THAT(cluster.actions.back().reason, HasSubstr("step expected"));
  EXPECT_THAT(cluster.actions.back().reason, HasSubstr("2 of fast: "));
}

TEST(DeviceModel, InterpolatesAndNeverFalls) {
  const std::vector<DeviceCurve::Point> points{
      {8, 0.002, 100}, {16, 0.0018, 100}, {64, 0.006, 100}, {128, 9.0, 2}};
  const DeviceModel model(points, 12);
  EXPECT_EQ(model.largest(), 64u);
  EXPECT_DOUBLE_EQ(model.seconds(1), 0.0019);
  EXPECT_DOUBLE_EQ(model.seconds(16), 0.0019);
  EXPECT_NEAR(model.seconds(40), 0.00395, 1e-9);
  EXPECT_NEAR(model.seconds(112), 0.0101, 1e-9);
  EXPECT_TRUE(model.knows(50));
  EXPECT_FALSE(model.knows(128));
}

TEST(CurveBook, TheCommonCurveIsThatOfMostWorkers) {
  std::vector<CurveBook> books(3);
  for (std::size_t i = 0; i < 3; ++i) books[i].add(16, 10, i == 1 ? 1.0 : 0.1);
  books[0].add(32, 10, 0.2);
  const std::vector<const CurveBook*> all{&books[0], &books[1], &books[2]};
  const auto points = common_points(all);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_DOUBLE_EQ(points[0].seconds, 0.01);
  EXPECT_DOUBLE_EQ(points[1].seconds, 0.02);
}

}  // namespace
}  // namespace antdt::ctl
