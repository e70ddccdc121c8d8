// Slots, and what members conclude from them.
#include "trainer/worker/step_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

StepSlot slot(std::uint64_t place, std::uint32_t records, std::uint64_t plan,
              std::uint64_t checkpoint) {
  StepSlot s;
  s.place = place;
  s.records = records;
  s.weight = records;
  s.loss = 0.5 * records;
  s.plan = PlanVersion{plan};
  s.checkpoint = checkpoint;
  return s;
}

TEST(StepSlot, SurvivesItsEncoding) {
  StepSlot sent = slot(0x0123'4567'89ab'cdef, 0xfedc'ba98, 7, 3);
  sent.weight = 0.1;
  sent.loss = -1e300;
  for (const bool flag : {false, true}) {
    sent.has_data = flag;
    sent.leaving = !flag;
    sent.all_well = flag;
    sent.wants_hop = !flag;
    sent.shares = flag;
    sent.asked_us = flag ? 0xfedc'ba98 : 0;
    EXPECT_EQ(decode_step_slot(encode(sent)), sent);
  }
}

TEST(StepSlot, IsLittleEndianOnTheWire) {
  const StepSlotBytes bytes = encode(slot(0x0102, 1, 0, 0));
  EXPECT_EQ(bytes[0], std::byte{0x02});
  EXPECT_EQ(bytes[1], std::byte{0x01});
}

TEST(Agreement, AddsRecordsAndTakesWhatEveryoneHolds) {
  const std::vector<StepSlot> slots{slot(100, 60, 4, 2), slot(50, 0, 3, 1), slot(70, 40, 5, 2)};
  const Agreement agreed = agree(slots);
  EXPECT_EQ(agreed.records, 100U);
  EXPECT_DOUBLE_EQ(agreed.weight, 100);
  EXPECT_DOUBLE_EQ(agreed.loss, 50);
  EXPECT_EQ(agreed.plan, PlanVersion{}) << "a plan that somebody lacks is not switched to";
  EXPECT_EQ(agreed.checkpoint, 1U) << "an order that somebody lacks is not followed yet";
  EXPECT_THAT(agreed.places, ::testing::ElementsAre(100, 50, 70));
  EXPECT_TRUE(agreed.applies());
}

TEST(Agreement, APlanIsSwitchedToWhenItIsTheNewestOfEveryone) {
  EXPECT_EQ(agree(std::vector<StepSlot>{slot(1, 1, 4, 0), slot(1, 1, 4, 0)}).plan, PlanVersion{4});
  // The second may have missed version 4.
  EXPECT_EQ(agree(std::vector<StepSlot>{slot(1, 1, 4, 0), slot(1, 1, 5, 0)}).plan, PlanVersion{});
}

TEST(Agreement, AStepWithoutRecordsAppliesNothing) {
  const std::vector<StepSlot> slots{slot(100, 0, 1, 0), slot(50, 0, 1, 0)};
  EXPECT_FALSE(agree(slots).applies());
}

TEST(Agreement, AStepThatOneMemberCannotApplyIsAppliedByNobody) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  slots[1].all_well = false;
  EXPECT_FALSE(agree(slots).applies());
}

TEST(Agreement, OneMemberThatLeavesIsKnownToAll) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  EXPECT_FALSE(agree(slots).any_leaving);
  slots[1].leaving = true;
  EXPECT_TRUE(agree(slots).any_leaving);
}

TEST(Agreement, HopsAreMeasuredWhenEverybodyWantsIt) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  slots[0].wants_hop = true;
  EXPECT_FALSE(agree(slots).measure_hop);
  slots[1].wants_hop = true;
  EXPECT_TRUE(agree(slots).measure_hop);
}

TEST(Agreement, TheFirstMemberSaysWhetherTheNextStepIsShared) {
  std::vector<StepSlot> slots{slot(100, 10, 1, 0), slot(50, 10, 1, 0)};
  slots[1].shares = true;
  EXPECT_FALSE(agree(slots).shares);
  slots[0].shares = true;
  slots[1].shares = false;
  slots[0].asked_us = 10;
  slots[1].asked_us = 30;
  EXPECT_TRUE(agree(slots).shares);
  EXPECT_EQ(agree(slots).asked, std::chrono::microseconds(20));
}

TEST(StepSlot, TheSlotsOfAllRanksAreReadFromWhatWasGathered) {
  const std::vector<StepSlot> slots{slot(9, 4, 2, 1), slot(8, 3, 2, 1)};
  std::vector<std::byte> bytes;
  for (const StepSlot& s : slots) {
    const StepSlotBytes one = encode(s);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  EXPECT_EQ(decode_step_slots(bytes), slots);
}

}  // namespace
}  // namespace antdt::worker
