#include "trainer/worker/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

using ::testing::ElementsAre;
using Numbers = std::vector<std::uint64_t>;

// Two members; their places follow from what they trained.
struct Members {
  explicit Members(StepLog& kept) : log(kept) {}
  void train(std::uint64_t phase, const Numbers& records) {
    for (std::size_t rank = 0; rank < 2; ++rank) places[rank] += records[rank];
    step = step.next();
    log.add(step, phase, places, records);
  }
  StepLog& log;
  Step step;
  Numbers places{0, 0};
};

TEST(StepLog, EqualStepsAreOneRun) {
  StepLog log;
  log.begin(Generation{3});
  Members members(log);
  for (int i = 0; i < 1000; ++i) members.train(1, {10, 6});
  const wire::StepHistory& history = log.history();
  EXPECT_EQ(history.generation, Generation{3});
  ASSERT_EQ(history.runs.size(), 1U);
  EXPECT_EQ(history.runs[0].first, Step{1});
  EXPECT_EQ(history.runs[0].steps, 1000U);
  EXPECT_EQ(history.runs[0].phase, 1U);
  EXPECT_THAT(history.runs[0].places, ElementsAre(0, 0));
  EXPECT_THAT(history.runs[0].records, ElementsAre(10, 6));
}

TEST(StepLog, AnotherPlanOrAnotherPhaseBeginsARunWhereItsMembersStood) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  members.train(1, {10, 6});
  members.train(1, {10, 6});
  members.train(1, {4, 12});
  members.places = {0, 0};  // a phase begins
  members.train(3, {4, 12});
  const auto& runs = log.history().runs;
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[1].first, Step{3});
  EXPECT_THAT(runs[1].places, ElementsAre(20, 12));
  EXPECT_EQ(runs[2].phase, 3U);
  EXPECT_THAT(runs[2].places, ElementsAre(0, 0));
}

TEST(StepLog, ForgetsWholeRunsThatAreRecorded) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  for (int i = 0; i < 5; ++i) members.train(1, {1, 1});
  for (int i = 0; i < 5; ++i) members.train(1, {2, 2});
  log.forget(Step{7});
  ASSERT_EQ(log.history().runs.size(), 1U);
  EXPECT_EQ(log.history().runs[0].first, Step{6}) << "it may still grow, and is told as a whole";
  log.forget(Step{10});
  EXPECT_TRUE(log.history().runs.empty());
  members.train(1, {2, 2});
  ASSERT_EQ(log.history().runs.size(), 1U);
  EXPECT_EQ(log.history().runs[0].first, Step{11});
  EXPECT_THAT(log.history().runs[0].places, ElementsAre(15, 15));
}

TEST(StepLog, ANewGenerationBeginsWithNothing) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  members.train(1, {1, 1});
  log.begin(Generation{2});
  EXPECT_EQ(log.history().generation, Generation{2});
  EXPECT_TRUE(log.history().runs.empty());
}

TEST(StepLog, UnrecordedStepsAreBoundedAndTheNewestAreKept) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  constexpr std::uint64_t kSteps = 3 * wire::StepHistory::kMaxNumbers / 4;
  for (std::uint64_t i = 1; i <= kSteps; ++i) members.train(1, {i % 7, 1});
  const auto& runs = log.history().runs;
  EXPECT_LE(runs.size() * 4, wire::StepHistory::kMaxNumbers);
  EXPECT_GE(runs.size() * 8, wire::StepHistory::kMaxNumbers - 8);
  EXPECT_EQ(runs.back().first, Step{kSteps});
  // And so it is for one that came from another member.
  StepLog copy(log.history());
  Members others(copy);
  others.step = members.step;
  others.places = members.places;
  for (std::uint64_t i = 1; i <= kSteps; ++i) others.train(1, {i % 7, 1});
  EXPECT_LE(copy.history().runs.size() * 4, wire::StepHistory::kMaxNumbers);
}

TEST(StepLog, StepsAreToldUpToTheFirstOneThatIsNotInEveryReplica) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  for (int i = 0; i < 5; ++i) members.train(1, {10, 6});
  members.places = {0, 0};  // a phase begins
  for (int i = 0; i < 4; ++i) members.train(3, {10, 0});
  members.train(3, {5, 5});
  const auto told = [&](const Numbers& places) { return log.history_up_to(3, places).runs; };
  EXPECT_EQ(told({40, 0}).size(), 2U);
  EXPECT_EQ(told({40, 0})[1].steps, 4U);
  ASSERT_EQ(told({29, 5}).size(), 2U);
  EXPECT_EQ(told({29, 5})[1].steps, 2U) << "the third ends at place 30";
  EXPECT_EQ(told({0, 0}).size(), 1U) << "an earlier phase is told whole";
  EXPECT_EQ(told({45, 5}).size(), 3U);
}

TEST(StepLog, RecordsThatAreNotInTheModelMadeNoStep) {
  StepLog log;
  log.begin(Generation{1});
  Members members(log);
  members.train(1, {9, 9});
  members.places = {0, 0};
  for (int i = 0; i < 5; ++i) members.train(3, {10, 6});
  log.keep(3, Numbers{30, 6});
  const auto& runs = log.history().runs;
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_THAT(runs[0].records, ElementsAre(9, 9));
  EXPECT_EQ(runs[1].steps, 1U);
  EXPECT_THAT(runs[1].records, ElementsAre(10, 6));
  EXPECT_EQ(runs[2].first, Step{3});
  EXPECT_EQ(runs[2].steps, 2U);
  EXPECT_THAT(runs[2].places, ElementsAre(10, 6));
  EXPECT_THAT(runs[2].records, ElementsAre(10, 0));
  EXPECT_EQ(runs[3].first, Step{5});
  EXPECT_EQ(runs[3].steps, 2U);
  EXPECT_THAT(runs[3].records, ElementsAre(0, 0));
}

}  // namespace
}  // namespace antdt::worker
