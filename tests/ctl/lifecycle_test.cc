#include "ctl/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using Effects = std::vector<job::Effect>;

Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

template <class T>
std::vector<T> all(const Effects& effects) {
  std::vector<T> found;
  for (const auto& e : effects) {
    if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
  }
  return found;
}

wire::ProcessExited code(int c) { return {c, 0, "", ""}; }
wire::ProcessExited killed(int s) { return {-1, s, "", ""}; }

class LifecycleTest : public testing::Test {
 protected:
  static JobSpec spec() {
    JobSpec s;
    s.epochs = 2;
    s.train_records = 800;
    s.eval_records = 200;
    s.checkpoint_every = seconds(60);
    return s;
  }
  Effects step(const job::Event& event) { return life.step(event, clock.now()); }
  void start() {
    step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
    for (std::uint32_t i : {0U, 1U}) step(job::Started{w(i), 100 + i});
    for (std::uint32_t i : {0U, 1U}) step(job::Joined{w(i), true});
  }
  Effects train_done(std::uint64_t phase) {
    step(job::MemberDone{w(0), phase});
    step(job::MemberDone{w(1), phase});
    return step(job::PhaseDrained{phase});
  }
  ManualClock clock;
  Lifecycle life{spec()};
};

TEST_F(LifecycleTest, GoesThroughAllPhasesAndEndsWhenEverybodyLeft) {
  start();
  EXPECT_EQ(life.state(), JobState::kForming);
  auto opened = all<job::OpenPhase>(step(job::GenerationSettled{Generation{1}}));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, "train");
  EXPECT_EQ(opened[0].start.records, 800U);
  opened = all<job::OpenPhase>(train_done(1));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, "eval");
  EXPECT_EQ(opened[0].start.records, 200U);
  opened = all<job::OpenPhase>(step(job::PhaseDrained{2}));
  EXPECT_EQ(opened.at(0).start.epoch, Epoch{1});
  train_done(3);
  opened = all<job::OpenPhase>(step(job::PhaseDrained{4}));
  EXPECT_EQ(opened.at(0).start.what, "finish");
  EXPECT_TRUE(all<job::End>(step(job::Exited{w(0), code(0)})).empty());
  const auto end = all<job::End>(step(job::Exited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
  EXPECT_EQ(life.state(), JobState::kDone);
}

TEST_F(LifecycleTest, AModelThatCannotBeKeptAtTheEndIsAFailure) {
  start();
  step(job::GenerationSettled{Generation{1}});
  train_done(1);
  step(job::PhaseDrained{2});
  train_done(3);
  step(job::PhaseDrained{4});
  step(job::CheckpointStored{1, "no space left on device"});
  step(job::Exited{w(0), code(0)});
  const auto end = all<job::End>(step(job::Exited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 1);
  EXPECT_THAT(end[0].outcome.first_cause, testing::HasSubstr("no space left"));
}

TEST_F(LifecycleTest, ATrainingPhaseWaitsForTheLastMemberToLeaveTheCollective) {
  start();
  step(job::GenerationSettled{Generation{1}});
  step(job::MemberDone{w(0), 1});
  EXPECT_TRUE(all<job::OpenPhase>(step(job::PhaseDrained{1})).empty());
  EXPECT_EQ(all<job::OpenPhase>(step(job::MemberDone{w(1), 1})).size(), 1U);
}

TEST_F(LifecycleTest, AnotherPhasesEndChangesNothing) {
  start();
  step(job::GenerationSettled{Generation{1}});
  EXPECT_TRUE(step(job::PhaseDrained{7}).empty());
}

TEST_F(LifecycleTest, TheFirstCauseIsTheCulpritEvenIfAVictimIsHeardFirst) {
  start();
  step(job::GenerationSettled{Generation{1}});
  const auto stops = all<job::StopWorker>(step(job::Exited{w(0), code(kExitCollectiveBroken)}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].member, w(1));
  const auto end = all<job::End>(step(job::Exited{w(1), killed(SIGSEGV)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 1);
  EXPECT_EQ(end[0].outcome.exit_class, "signal");
  EXPECT_THAT(end[0].outcome.first_cause, testing::HasSubstr("w1 on b was killed by signal 11"));
}

TEST_F(LifecycleTest, WhoWasKilledByOurOwnStopIsNotTheCause) {
  start();
  step(job::GenerationSettled{Generation{1}});
  step(job::Exited{w(1), code(3)});
  clock.advance(seconds(20));
  const auto end = all<job::End>(step(job::Exited{w(0), killed(SIGKILL)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_THAT(end[0].outcome.first_cause, testing::HasSubstr("w1 on b exited with code 3"));
}

TEST_F(LifecycleTest, AProgramThatCannotBeExecutedIsAConfigurationError) {
  start();
  step(job::Exited{w(0), {-1, 0, "cannot execute /no/such: No such file or directory", ""}});
  const auto end = all<job::End>(step(job::Exited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 2);
  EXPECT_THAT(end[0].outcome.first_cause, testing::HasSubstr("/no/such"));
}

TEST_F(LifecycleTest, AWorkerThatEndsWellTooEarlyIsAFailure) {
  start();
  step(job::GenerationSettled{Generation{1}});
  EXPECT_EQ(all<job::StopWorker>(step(job::Exited{w(0), code(0)})).size(), 1U);
  const auto end = all<job::End>(step(job::Exited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, "failed");
  EXPECT_THAT(end[0].outcome.first_cause, testing::HasSubstr("w0 on a ended before"));
}

TEST_F(LifecycleTest, AStopChecksPointsFirstAndThenEverybodyLeaves) {
  start();
  step(job::GenerationSettled{Generation{1}});
  const Effects stop = step(job::StopAsked{"operator", seconds(10)});
  EXPECT_EQ(all<job::OrderCheckpoint>(stop).size(), 1U);
  EXPECT_TRUE(all<job::StopWorker>(stop).empty());
  const Effects stored = step(job::CheckpointStored{1, ""});
  ASSERT_EQ(all<job::LeaveAll>(stored).size(), 1U);
  step(job::Exited{w(0), code(75)});
  const auto end = all<job::End>(step(job::Exited{w(1), code(75)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 75);
  EXPECT_TRUE(end[0].outcome.resumable);
}

TEST_F(LifecycleTest, AStopWhoseGracePassesKills) {
  start();
  step(job::GenerationSettled{Generation{1}});
  step(job::StopAsked{"operator", seconds(10)});
  clock.advance(seconds(11));
  const auto stops = all<job::StopWorker>(step(job::Tick{}));
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[0].grace, Duration::zero());
}

TEST_F(LifecycleTest, CheckpointsAreOrderedOneAtATimeAtTheirInterval) {
  start();
  step(job::GenerationSettled{Generation{1}});
  EXPECT_TRUE(step(job::Tick{}).empty());
  clock.advance(seconds(61));
  EXPECT_EQ(all<job::OrderCheckpoint>(step(job::Tick{})).size(), 1U);
  clock.advance(seconds(61));
  EXPECT_TRUE(step(job::Tick{}).empty()) << "the first one is not stored yet";
  step(job::CheckpointStored{1, ""});
  EXPECT_EQ(all<job::OrderCheckpoint>(step(job::Tick{})).size(), 1U);
}

TEST_F(LifecycleTest, APlainProgramIsDoneWhenAllItsProcessesAre) {
  JobSpec s = spec();
  s.protocol = Protocol::kTorchrun;
  Lifecycle plain(s);
  std::ignore =
      plain.step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "a", 0}}}, clock.now());
  std::ignore = plain.step(job::Started{w(0), 1}, clock.now());
  std::ignore = plain.step(job::Started{w(1), 2}, clock.now());
  EXPECT_EQ(plain.state(), JobState::kTraining);
  EXPECT_TRUE(all<job::End>(plain.step(job::Exited{w(0), code(0)}, clock.now())).empty());
  const auto end = all<job::End>(plain.step(job::Exited{w(1), code(0)}, clock.now()));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, LooseMembersOpenTheFirstPhaseAlone) {
  step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(job::Started{w(0), 100});
  EXPECT_EQ(all<job::OpenPhase>(step(job::Joined{w(0), false})).size(), 1U);
  EXPECT_EQ(all<job::OpenPhase>(step(job::PhaseDrained{1})).at(0).start.what, "eval");
}

TEST_F(LifecycleTest, TheImageBringsBackWhereTheJobStood) {
  start();
  step(job::GenerationSettled{Generation{1}});
  train_done(1);
  Lifecycle again(spec());
  again.restore(life.image());
  EXPECT_EQ(again.state(), JobState::kEvaluating);
  EXPECT_EQ(again.phase().phase, 2U);
  EXPECT_TRUE(again.is_current(w(1)));
}

}  // namespace
}  // namespace antdt::ctl
