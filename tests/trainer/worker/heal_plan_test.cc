// Tests which member sends the training state to which.
#include "trainer/worker/member/heal_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

using ::testing::HasSubstr;

HealSlot holder(std::uint64_t step, std::uint64_t meta_bytes = 100) {
  return {true, Step{step}, meta_bytes, 2, 800, 77};
}
HealSlot newcomer() { return {false, Step{0}, 30, 2, 800, 77}; }

// The role of each member, by rank: "." nothing, "s" sends, "r" receives, "x" both.
std::string flows(const std::vector<HealSlot>& slots) {
  std::string result;
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    const auto plan = heal_plan(slots, rank);
    if (!plan) return plan.error().message;
    result += plan->receives ? (plan->sends ? 'x' : 'r') : (plan->sends ? 's' : '.');
  }
  return result;
}

TEST(HealPlan, WhereEverybodyIsAtTheSameStepNothingIsSent) {
  EXPECT_EQ(flows({holder(7), holder(7), holder(7)}), "...");
  EXPECT_EQ(flows({holder(0)}), ".");
}

TEST(HealPlan, ANewcomerReceivesFromItsLeftNeighbour) {
  EXPECT_EQ(flows({holder(7), newcomer(), holder(7)}), "sr.");
  EXPECT_EQ(flows({newcomer(), holder(7)}), "rs");
}

TEST(HealPlan, NewcomersPassOnWhatTheyReceiveAroundTheRingToo) {
  EXPECT_EQ(flows({holder(7), newcomer(), newcomer(), holder(7)}), "sxr.");
  EXPECT_EQ(flows({newcomer(), newcomer(), holder(7), newcomer()}), "xrsx");
}

TEST(HealPlan, MembersAStepBehindReceiveFromThoseThatAreNot) {
  EXPECT_EQ(flows({holder(7), holder(8), holder(7), holder(8)}), "rsrs");
  EXPECT_EQ(heal_plan(std::vector{holder(7), holder(8)}, 0)->version.step, Step{8});
  EXPECT_EQ(heal_plan(std::vector{holder(7), holder(8)}, 1)->version.step, Step{8});
}

TEST(HealPlan, AStepThatSomebodyWithoutTheStateNamesCountsForNothing) {
  HealSlot lost = newcomer();
  lost.step = Step{900};
  EXPECT_EQ(flows({holder(7), lost}), "sr");
  EXPECT_EQ(heal_plan(std::vector{holder(7), lost}, 1)->version.step, Step{7});
}

TEST(HealPlan, TheHeaderBeforeThePartsIsAsLongAsItsSourceSays) {
  const std::vector slots{holder(7, 111), newcomer(), newcomer(), holder(7, 222), newcomer()};
  const std::vector<std::uint64_t> expected{111, 111, 111, 222, 222};
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    EXPECT_EQ(heal_plan(slots, rank)->meta_bytes, expected[rank]) << rank;
  }
}

TEST(HealPlan, StatesAreComparedAndPassedOnDevicesIfAllAreThere) {
  std::vector slots{holder(7), newcomer(), holder(7)};
  for (HealSlot& slot : slots) slot.on_device = true;
  EXPECT_TRUE(heal_plan(slots, 0)->on_device);
  EXPECT_TRUE(heal_plan(slots, 1)->on_device);
  slots[2].on_device = false;
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_FALSE(heal_plan(slots, rank)->on_device);
}

TEST(HealPlan, NobodyWithTheStateIsAnErrorForAll) {
  EXPECT_THAT(flows({newcomer(), newcomer()}), HasSubstr("none of the 2 members holds"));
}

TEST(HealPlan, StatesOfDifferentSizesAreAnErrorThatNamesBoth) {
  HealSlot other = newcomer();
  other.parts = 3;
  other.part_bytes = 900;
  EXPECT_THAT(flows({holder(7), other}),
              HasSubstr("rank 0 has 2 parts with 800 bytes and that of rank 1 has 3 with 900"));
  other = newcomer();
  other.part_sizes = 78;
  EXPECT_THAT(flows({holder(7), other}), HasSubstr("of other sizes"));
}

TEST(HealPlan, AnAbsurdLengthIsRefused) {
  EXPECT_THAT(flows({holder(7, std::uint64_t{1} << 60), newcomer()}), HasSubstr("rank 0 wants"));
}

}  // namespace
}  // namespace antdt::worker
