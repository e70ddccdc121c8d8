#include "ctl/lifecycle/state/phases.h"

#include <gtest/gtest.h>

#include <vector>

namespace antdt::ctl {
namespace {

// Phases 1, 2, 3 and 4 are the epochs 0 to 3; there is no evaluation.
Phases::Shape grown_to(std::uint64_t records) {
  return {4, records, 0, records == 100 ? 0U : 100U};
}

std::vector<std::uint64_t> sizes(const Phases& phases) {
  std::vector<std::uint64_t> records;
  for (std::uint64_t phase = 1; phase <= 4; ++phase) {
    records.push_back(phases.describe(phase).records);
  }
  return records;
}

TEST(PhasesTest, AnEpochThatWasOpenedKeepsItsRecordsWhenTheDataGrow) {
  Phases first(grown_to(100));
  first.open(1);
  first.open(2);
  Phases second(grown_to(150));
  second.restore(2, first.sizes(), std::nullopt);
  EXPECT_EQ(sizes(second), (std::vector<std::uint64_t>{100, 100, 150, 150}));
  EXPECT_EQ(second.open().records, 100U);
  second.open(3);
  Phases third(grown_to(170));
  third.restore(3, second.sizes(), std::nullopt);
  EXPECT_EQ(sizes(third), (std::vector<std::uint64_t>{100, 100, 150, 170}));
}

TEST(PhasesTest, AnEpochThatIsOpenedAgainHasTheRecordsThatItHad) {
  Phases before(grown_to(100));
  for (const std::uint64_t phase : {1, 2, 3}) before.open(phase);
  Phases phases(grown_to(150));
  phases.restore(3, before.sizes(), std::nullopt);
  phases.go_back_to(1, 100);
  phases.open(2);
  EXPECT_EQ(sizes(phases), (std::vector<std::uint64_t>{100, 100, 100, 150}));
}

TEST(PhasesTest, ANewJournalTakesTheSizeOfTheCheckpointsEpoch) {
  Phases phases(grown_to(150));
  phases.go_back_to(2, 100);
  EXPECT_EQ(sizes(phases), (std::vector<std::uint64_t>{100, 100, 150, 150}));
}

TEST(PhasesTest, AJournalOfAnEarlierReleaseHasOpenedAllUpToItsPhase) {
  Phases phases(grown_to(150));
  phases.restore(2, {}, std::nullopt);
  EXPECT_EQ(sizes(phases), (std::vector<std::uint64_t>{100, 100, 150, 150}));
}

}  // namespace
}  // namespace antdt::ctl
