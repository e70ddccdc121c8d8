// How far apart the replicas of 16 members stay by how they are mixed: noisy descent of vectors.
#include <gtest/gtest.h>

#include <cmath>

#include "bench/synchronisation/descent.h"

namespace antdt::bench::synchronisation {
namespace {

Descent of_sixteen(double skew) {
  Descent about;
  about.dimensions = 40;
  about.skew = skew;
  return about;
}

TEST(Consensus, DsSyncKeepsReplicasTogetherAndFixedGroupsDoNot) {
  for (const double skew : {0.0, 0.75}) {
    const Descent about = of_sixteen(skew);
    const double none = descend(about, Mixing::kNone).consensus_error;
    const double fixed = descend(about, Mixing::kFixedGroups).consensus_error;
    const double ds_sync = descend(about, Mixing::kDsSync).consensus_error;
    EXPECT_LT(ds_sync, 1e-2) << skew;
    EXPECT_GT(fixed, 5 * ds_sync) << skew;
    EXPECT_GT(none, 1.5 * fixed) << skew;
  }
}

// Of members whose data differ, fixed groups stay apart by what the data of the groups differ in,
// however small the rate is; what DS-Sync leaves shrinks with the rate.
TEST(Consensus, WhatDsSyncLeavesIsProportionalToTheRate) {
  Descent about = of_sixteen(0.75);
  about.noise = 0;
  about.dimensions = 20;
  about.steps = 4000;
  const double before = descend(about, Mixing::kDsSync).consensus_error;
  const double fixed_before = descend(about, Mixing::kFixedGroups).consensus_error;
  about.rate /= 2;
  about.steps *= 2;
  EXPECT_NEAR(descend(about, Mixing::kDsSync).consensus_error / before, 0.5, 0.05);
  EXPECT_NEAR(descend(about, Mixing::kFixedGroups).consensus_error / fixed_before, 1, 0.05);
}

// Mixing changes no sum of replicas, whatever the sizes of the groups. Gradients of a quadratic
// function are linear, so the mean of all members descends as if all gradients were summed.
TEST(Consensus, TheMeanOfAllReplicasIsThatOfSummedGradients) {
  for (const std::uint32_t members : {5U, 10U, 16U, 26U}) {
    Descent about = of_sixteen(0.75);
    about.members = members;
    about.steps = 500;
    const auto summed = descend(about, Mixing::kAll);
    const auto ds_sync = descend(about, Mixing::kDsSync);
    for (std::size_t k = 0; k < summed.mean.size(); ++k) {
      ASSERT_NEAR(ds_sync.mean[k], summed.mean[k], 1e-12) << members;
    }
    EXPECT_LT(summed.consensus_error, 1e-12);
  }
}

}  // namespace
}  // namespace antdt::bench::synchronisation
