#include "ctl/control/solutions/lb_bsp.h"

#include <gtest/gtest.h>

#include "tests/ctl/control/virtual_cluster.h"

namespace antdt::ctl {
namespace {

using testing::VirtualCluster;

VirtualCluster::Options noisy_cluster(double noise) {
  VirtualCluster::Options options;
  options.solution = "lb-bsp";
  options.window_s = 2;
  options.noise = noise;
  return options;
}

TEST(LbBsp, PartsFollowSpeedAndComeBackWithIt) {
  VirtualCluster cluster(noisy_cluster(0.05));
  for (auto& worker : cluster.workers) worker.per_sample_s = 2.5e-4;
  cluster.workers[3].slowdown = 3;
  cluster.run_for(40);
  EXPECT_NEAR(cluster.share(3), 102, 20);
  cluster.workers[3].slowdown = 1;
  cluster.run_for(40);
  EXPECT_NEAR(cluster.share(3), 256, 40);
}

TEST(LbBsp, NoiseMovesPartsUnlikeWithNd) {
  VirtualCluster cluster(noisy_cluster(0.1));
  for (auto& worker : cluster.workers) worker.per_sample_s = 2.5e-4;
  cluster.run_for(120);
  EXPECT_FALSE(cluster.actions.empty());
  EXPECT_LT(cluster.step_s(), 1.2 * 256 * 2.5e-4);
}

TEST(LbBsp, BatchesThatMayNotChangeAreLeftAlone) {
  auto options = noisy_cluster(0.1);
  options.adjust = Adjust::kNone;
  VirtualCluster cluster(options);
  cluster.workers[3].slowdown = 3;
  cluster.run_for(40);
  EXPECT_TRUE(cluster.actions.empty());
}

}  // namespace
}  // namespace antdt::ctl
