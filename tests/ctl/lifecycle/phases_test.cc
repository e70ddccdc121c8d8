#include "ctl/lifecycle/state/phases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
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
  second.restore(2, first.sizes(), std::nullopt, std::nullopt);
  EXPECT_EQ(sizes(second), (std::vector<std::uint64_t>{100, 100, 150, 150}));
  EXPECT_EQ(second.open().records, 100U);
  second.open(3);
  Phases third(grown_to(170));
  third.restore(3, second.sizes(), std::nullopt, std::nullopt);
  EXPECT_EQ(sizes(third), (std::vector<std::uint64_t>{100, 100, 150, 170}));
}

TEST(PhasesTest, AnEpochThatIsOpenedAgainHasTheRecordsThatItHad) {
  Phases before(grown_to(100));
  for (const std::uint64_t phase : {1, 2, 3}) before.open(phase);
  Phases phases(grown_to(150));
  phases.restore(3, before.sizes(), std::nullopt, std::nullopt);
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
  phases.restore(2, {}, std::nullopt, std::nullopt);
  EXPECT_EQ(sizes(phases), (std::vector<std::uint64_t>{100, 100, 150, 150}));
}

// Phases 1 and 2 are epoch 0: its training and its evaluation.
const Phases::Shape kEvaluated{4, 100, 10, 0};

std::string shown(const Phases& phases, std::uint64_t phase) {
  const wire::PhaseStart start = phases.describe(phase);
  return fmt::format("{} of epoch {}", start.what, start.epoch.value);
}

TEST(PhasesTest, AnEpochInWhichTheTrainingEndsIsEvaluatedAndTheLast) {
  Phases phases(kEvaluated);
  phases.open(3);
  phases.end("enough");
  phases.drain(40);
  EXPECT_EQ(phases.last(), 5U);
  EXPECT_EQ(shown(phases, 4), "eval of epoch 1");
  EXPECT_EQ(shown(phases, 5), "finish of epoch 2");
  Phases again(kEvaluated);
  again.restore(3, phases.sizes(), phases.ending(), std::nullopt);
  EXPECT_EQ(again.last(), 5U);
  EXPECT_EQ(again.ending()->reason, "enough");
}

TEST(PhasesTest, AnEpochOfWhichNothingIsTrainedIsNotEvaluated) {
  Phases phases(kEvaluated);
  phases.open(3);
  phases.end("enough");
  phases.drain(0);
  EXPECT_EQ(phases.last(), 4U);
  EXPECT_EQ(shown(phases, 4), "finish of epoch 1");
}

TEST(PhasesTest, TheTrainingEndsBehindAnEvaluationAndWithoutOne) {
  Phases evaluating(kEvaluated);
  evaluating.open(2);
  evaluating.end("enough");
  EXPECT_EQ(shown(evaluating, 3), "finish of epoch 1");
  Phases only_trained({4, 100, 0, 0});
  only_trained.open(2);
  only_trained.end("enough");
  only_trained.drain(1);
  EXPECT_EQ(shown(only_trained, 3), "finish of epoch 2");
}

TEST(PhasesTest, WhoGoesBackBeforeTheEndOfTheTrainingGoesOnWithIt) {
  Phases phases(kEvaluated);
  phases.open(3);
  phases.end("enough");
  phases.go_back_to(1, 100);
  EXPECT_EQ(phases.last(), 9U);
  // The checkpoint is from after the end.
  phases.go_back_to(4, 10, "enough");
  EXPECT_EQ(phases.last(), 5U);
}

}  // namespace
}  // namespace antdt::ctl
