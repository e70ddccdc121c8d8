#include <gtest/gtest.h>

#include "jobd/skip_desk.h"

namespace antdt::jobd {
namespace {

shard_server::Phase phase(std::uint64_t number, shard_server::PhaseKind kind, std::uint32_t epoch) {
  return {number, kind, Epoch{epoch}};
}
constexpr auto kTrain = shard_server::PhaseKind::kTrain;
constexpr auto kEval = shard_server::PhaseKind::kEval;

SkipList list_of(const launcher::Skip& skip) { return SkipList({skip}); }

TEST(SkipList, SkipsAreDeclaredOnceInTheTrainingOfTheirEpoch) {
  SkipList skips = list_of({1, 10, 20, "damaged", "ada", 0});
  EXPECT_TRUE(skips.take_due(phase(1, kTrain, 0), Lineage{1}).empty());
  EXPECT_TRUE(skips.take_due(phase(2, kEval, 1), Lineage{1}).empty());
  const auto due = skips.take_due(phase(3, kTrain, 1), Lineage{1});
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].from, 10U);
  EXPECT_EQ(due[0].to, 20U);
  EXPECT_EQ(due[0].who, "ada");
  EXPECT_TRUE(skips.take_due(phase(3, kTrain, 1), Lineage{1}).empty());
}

TEST(SkipList, ALineageThatBeginsAtACheckpointHearsThemAgain) {
  SkipList skips = list_of({0, 10, 20, "damaged", "ada", 1});
  EXPECT_TRUE(skips.take_due(phase(1, kTrain, 0), Lineage{1}).empty());
  EXPECT_EQ(skips.take_due(phase(1, kTrain, 0), Lineage{2}).size(), 1U);
  EXPECT_EQ(skips.all().at(0).lineage, 2U);
}

TEST(SkipList, NothingIsDeclaredBeforeAPhaseIsOpen) {
  SkipList skips = list_of({0, 10, 20, "damaged", "ada", 0});
  EXPECT_TRUE(skips.take_due({}, Lineage{1}).empty());
}

TEST(SkipList, TheyAreWrittenAgainWhenOneWasDeclared) {
  SkipList skips = list_of({0, 10, 20, "damaged", "ada", 0});
  EXPECT_FALSE(skips.take_changed());
  std::ignore = skips.take_due(phase(1, kTrain, 0), Lineage{1});
  EXPECT_TRUE(skips.take_changed());
  EXPECT_FALSE(skips.take_changed());
}

}  // namespace
}  // namespace antdt::jobd
