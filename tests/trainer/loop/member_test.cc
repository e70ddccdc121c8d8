// Members from join to bye, against a small job daemon over real sockets; the
// model counts how often each record entered it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "tests/trainer/loop/testing.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;

std::vector<Outcome> run_members(FakeJob& job, std::uint32_t size, std::uint64_t records,
                                 std::vector<drill::Rule> rules_of_w0 = {},
                                 int refused_connections = 0) {
  Faults faults;
  faults.refused_connections = refused_connections;
  return run_drill({job, size, records, std::move(rules_of_w0)}, faults);
}

// Steps so slow that orders arrive in the middle of the phase.
std::vector<drill::Rule> slow_steps() {
  drill::Rule rule;
  rule.workers = {"*"};
  rule.delay = std::chrono::milliseconds(3);
  return {rule};
}

TEST(Member, EveryRecordEntersTheModelOnceAnEpoch) {
  constexpr std::uint64_t kRecords = 1003;
  for (std::uint32_t size : {1U, 3U}) {
    FakeJob job(size,
                {{wire::PhaseKind::kTrain, kRecords},
                 {wire::PhaseKind::kEval, kRecords},
                 {wire::PhaseKind::kTrain, kRecords}},
                even_plan(size, 10, 2));
    const auto outcomes = run_members(job, size, kRecords);
    for (const Outcome& outcome : outcomes) {
      ASSERT_TRUE(outcome.code) << outcome.code.error().message;
      EXPECT_EQ(*outcome.code, 0);
      EXPECT_THAT(outcome.counts, Each(2.0F));
      EXPECT_DOUBLE_EQ(std::accumulate(outcome.weights.begin(), outcome.weights.end(), 0.0),
                       2.0 * kRecords);
    }
    const FakeJob::Seen seen = job.seen();
    EXPECT_EQ(seen.evaluated, kRecords);
    EXPECT_EQ(seen.committed, 3 * kRecords) << "the last places are committed too";
    EXPECT_EQ(seen.byes.size(), size);
    ASSERT_EQ(seen.done.size(), 2 * size);
    EXPECT_EQ(seen.done.back().samples, kRecords);
    EXPECT_DOUBLE_EQ(seen.done.back().loss_sum, 2.0 * kRecords);
  }
}

TEST(Member, AStepThatCannotBeAppliedEndsTheMemberWithItsError) {
  FakeJob job(1, {{wire::PhaseKind::kTrain, 100}}, even_plan(1, 10));
  Drill drill{job, 1, 100};
  drill.fails_after = 2;
  Faults faults;
  const auto outcomes = run_drill(drill, faults);
  ASSERT_FALSE(outcomes[0].code);
  EXPECT_EQ(outcomes[0].code.error().kind, ErrorKind::kInternal);
  EXPECT_EQ(outcomes[0].code.error().message, "the optimizer jams");
  EXPECT_EQ(outcomes[0].weights.size(), 2U);
}

// As of a device that fails in an update, which nobody waits for: the next call is a checkpoint's.
TEST(Member, WhatItsEngineThrowsEndsTheMemberWithThatReason) {
  FakeJob job(1, {{wire::PhaseKind::kTrain, 1000}}, even_plan(1, 10));
  job.script.send_at_step(5, wire::CheckpointOrder{3});
  Faults faults;
  bool failed = false;
  faults.at_point = [&](std::uint32_t, Point at, Step) {
    failed = failed || at == Point::kSave;
    if (failed) throw std::runtime_error("an illegal memory access");
  };
  const auto outcomes = run_drill({job, 1, 1000, slow_steps()}, faults);
  EXPECT_TRUE(failed);
  ASSERT_FALSE(outcomes[0].code);
  EXPECT_EQ(outcomes[0].code.error().kind, ErrorKind::kInternal);
  EXPECT_EQ(outcomes[0].code.error().message,
            "the training cannot go on here: an illegal memory access");
}

TEST(Member, AFormationThatFailsIsToldAndTheNextOneIsJoined) {
  constexpr std::uint64_t kRecords = 100;
  FakeJob job(1, {{wire::PhaseKind::kTrain, kRecords}}, even_plan(1, 10));
  const auto outcomes = run_members(job, 1, kRecords, {}, 2);
  ASSERT_TRUE(outcomes[0].code) << outcomes[0].code.error().message;
  EXPECT_EQ(*outcomes[0].code, 0);
  EXPECT_THAT(outcomes[0].counts, Each(1.0F));
  EXPECT_EQ(job.seen().generation, Generation{3});
}

TEST(Member, AGenerationThatEndsBeforeItsFormIsObeyedIsFollowedByAJoin) {
  constexpr std::uint64_t kRecords = 100;
  FakeJob job(2, {{wire::PhaseKind::kTrain, kRecords}}, even_plan(2, 10));
  job.script.form({.aborts_first = true});
  for (const Outcome& outcome : run_members(job, 2, kRecords)) {
    ASSERT_TRUE(outcome.code) << outcome.code.error().message;
    EXPECT_THAT(outcome.counts, Each(1.0F));
  }
  EXPECT_EQ(job.seen().generation, Generation{2});
}

TEST(Member, TimesAddUpToTheWallTime) {
  FakeJob job(2, {{wire::PhaseKind::kTrain, 400}, {wire::PhaseKind::kEval, 100}}, even_plan(2, 10));
  for (const Outcome& outcome : run_members(job, 2, 400)) {
    EXPECT_NEAR(sum_of(outcome.account), to_seconds(outcome.wall), 0.05);
    EXPECT_GT(outcome.account.startup, 0);
  }
}

TEST(Member, AllSwitchToANewPlanAtTheSameStep) {
  constexpr std::uint64_t kRecords = 2000;
  FakeJob job(2, {{wire::PhaseKind::kTrain, kRecords}}, even_plan(2, 10));
  job.script.send_at_step(5,
                          wire::Plan{PlanVersion{2}, {{{'w', 0}, 5, 1}, {{'w', 1}, 25, 2}}, 0.5});
  const auto outcomes = run_members(job, 2, kRecords, slow_steps());
  // Steps have 20 records under the first plan, 55 under the second, and no other sum between, so
  // no member switched alone.
  const std::vector<double>& weights = outcomes[0].weights;
  ASSERT_EQ(outcomes[1].weights, weights);
  const auto switched =
      std::find_if(weights.begin(), weights.end(), [](double w) { return w > 20; });
  ASSERT_NE(switched, weights.end()) << "the plan was never taken up";
  for (auto at = weights.begin(); at != switched; ++at) EXPECT_LE(*at, 20);
  EXPECT_EQ(std::count(switched, weights.end(), 20.0), 0);
  EXPECT_GT(std::count(switched, weights.end(), 55.0), 5);
  EXPECT_THAT(outcomes[0].counts, Each(1.0F));
  EXPECT_EQ(job.seen().last_plan, PlanVersion{2});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.rate, 0.5);
}

TEST(Member, RankZeroWritesACheckpointAtTheAgreedStepAndOneAtTheEnd) {
  FakeJob job(2, {{wire::PhaseKind::kTrain, 1000}}, even_plan(2, 10));
  job.script.send_at_step(5, wire::CheckpointOrder{3});
  run_members(job, 2, 1000, slow_steps());
  const auto checkpoints = job.seen().checkpoints;
  ASSERT_EQ(checkpoints.size(), 2U);
  EXPECT_EQ(checkpoints[1].number, 4U);
  EXPECT_GT(checkpoints[1].step, checkpoints[0].step);
  EXPECT_EQ(checkpoints[0].number, 3U);
  EXPECT_EQ(checkpoints[0].phase, 1U);
  EXPECT_GE(checkpoints[0].step, Step{5});
  EXPECT_EQ(checkpoints[0].error, "");
  ASSERT_EQ(checkpoints[0].places.size(), 2U);
  EXPECT_EQ(checkpoints[0].places[1].worker, (WorkerId{'w', 1}));
  EXPECT_GT(checkpoints[0].places[1].place, 0U);
  EXPECT_TRUE(std::filesystem::exists(checkpoints[0].directory + "/tally"));
  ASSERT_EQ(job.seen().begun.size(), 1U) << "and the last one is of no step that others follow";
  EXPECT_EQ(job.seen().begun[0].number, 3U);
  EXPECT_EQ(job.seen().begun[0].step, checkpoints[0].step);
  EXPECT_EQ(job.seen().begun[0].places.size(), 2U);
}

TEST(Member, AMemberThatIsAskedToLeaveGoesAfterItsWorkIsStable) {
  FakeJob job(1, {{wire::PhaseKind::kTrain, 100'000}}, even_plan(1, 10));
  job.script.leave_at_step(5, {'w', 0});
  const auto outcomes = run_members(job, 1, 100'000);
  ASSERT_TRUE(outcomes[0].code);
  EXPECT_EQ(*outcomes[0].code, 75);
  const double trained = std::accumulate(outcomes[0].counts.begin(), outcomes[0].counts.end(), 0.0);
  EXPECT_LT(trained, 100'000);
  EXPECT_DOUBLE_EQ(static_cast<double>(job.seen().committed), trained);
}

TEST(Member, AnAbortReleasesMembersInTheMiddleOfAPhase) {
  FakeJob job(2, {{wire::PhaseKind::kTrain, 100'000}}, even_plan(2, 10));
  job.script.abort_at_step(5, true);
  for (const Outcome& outcome : run_members(job, 2, 100'000)) {
    ASSERT_TRUE(outcome.code);
    EXPECT_EQ(*outcome.code, 75);
  }
}

TEST(Member, InjectedDelaysCountAsComputeTime) {
  drill::Rule rule;
  rule.workers = {"*"};
  rule.delay = std::chrono::milliseconds(5);
  FakeJob job(2, {{wire::PhaseKind::kTrain, 400}}, even_plan(2, 10));
  const auto outcomes = run_members(job, 2, 400, {rule});
  EXPECT_GE(outcomes[0].account.compute, 20 * 0.005 * 0.9);
  EXPECT_GT(outcomes[1].account.collective_wait, outcomes[0].account.collective_wait);
}

TEST(Member, AMemberThatIsStuckInAStepStillReportsItsActivity) {
  drill::Rule rule;
  rule.workers = {"*"};
  rule.delay = std::chrono::milliseconds(1500);  // more than a second: a pulse falls into it
  FakeJob job(1, {{wire::PhaseKind::kTrain, 10}}, even_plan(1, 10));
  const auto outcomes = run_members(job, 1, 10, {rule});
  EXPECT_EQ(*outcomes[0].code, 0);
  EXPECT_THAT(job.seen().activities, ::testing::Contains("compute"));
}

TEST(Member, TheFirstBatchAfterAPlanChangeIsNotCounted) {
  FakeJob job(1, {{wire::PhaseKind::kTrain, 1000}}, even_plan(1, 10));
  job.script.send_at_step(5, wire::Plan{PlanVersion{2}, {{{'w', 0}, 20, 1}}});
  run_members(job, 1, 1000, slow_steps());
  const wire::Report report = job.seen().reports.at({'w', 0});
  EXPECT_GE(report.skipped, 2U) << "the first of each plan";
  EXPECT_EQ(report.samples_total, 1000U);
}

}  // namespace
}  // namespace antdt::trainer
