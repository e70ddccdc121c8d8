// What steps cost over links of different speeds: rings of all members, and of the groups of
// DS-Sync.
#include "bench/synchronisation/step_times.h"

#include <gtest/gtest.h>

namespace antdt::bench::synchronisation {
namespace {

TEST(StepTimes, ARingOfAllTakesAsLongAsItsSlowestLink) {
  Fleet fleet;
  // 30 rounds of a sixteenth of the bytes, and 4 hops for the slots.
  EXPECT_NEAR(all_reduce_s(fleet), 0.1 + 30 * (0.2e-3 + 5e-3) + 0.8e-3, 1e-9);
  fleet.slow.link = {3, 4};
  EXPECT_NEAR(all_reduce_s(fleet), 0.1 + 30 * (0.2e-3 + 50e-3) + 0.8e-3, 1e-9);
  fleet.slow.link = {3, 7};  // of which the ring makes no use
  EXPECT_NEAR(all_reduce_s(fleet), 0.1 + 30 * (0.2e-3 + 5e-3) + 0.8e-3, 1e-9);
}

// Its two members are in one group once in five steps, and next to each other in most of these.
TEST(StepTimes, ASlowLinkCostsDsSyncAtMostOneStepOfACycle) {
  Fleet fleet;
  const double fast = ds_sync_s(fleet, 0);
  EXPECT_NEAR(fast, 0.1 + 6 * (0.2e-3 + 20e-3) + 0.8e-3, 1e-9);
  for (std::uint32_t other : {1U, 4U, 15U}) {
    fleet.slow.link = {0, other};
    const double slow = ds_sync_s(fleet, 0);
    const bool used = slow > fast + 1e-9;
    EXPECT_NEAR(slow, fast + (used ? 6 * 180e-3 / 5 : 0), 1e-9) << other;
  }
}

// A host whose every link is slow is in a group in each step, so it costs nearly what it costs a
// ring of all; to agree on steps later changes nothing in that.
TEST(StepTimes, ASlowHostCostsEachStep) {
  Fleet fleet;
  fleet.slow.host = 3;
  EXPECT_GT(ds_sync_s(fleet, 0), 0.8 * all_reduce_s(fleet));
  EXPECT_GT(ds_sync_s(fleet, 4), 0.99 * ds_sync_s(fleet, 0));
}

TEST(StepTimes, WhoAgreesOneStepLaterWaitsLessForStragglers) {
  Fleet fleet;
  fleet.slow.straggles = 0.05;
  EXPECT_LT(ds_sync_s(fleet, 1), 0.95 * ds_sync_s(fleet, 0));
}

}  // namespace
}  // namespace antdt::bench::synchronisation
