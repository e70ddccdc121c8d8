// A job's phases, checkpoints and end.
#include "ctl/lifecycle/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

TEST_F(LifecycleTest, GoesThroughAllPhasesAndEndsWhenEverybodyLeft) {
  start();
  EXPECT_EQ(life.state(), JobState::kForming);
  auto opened = all<job::OpenPhase>(settle({w(0), w(1)}));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, wire::PhaseKind::kTrain);
  EXPECT_EQ(opened[0].start.records, 800U);
  opened = all<job::OpenPhase>(train_done(1));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, wire::PhaseKind::kEval);
  EXPECT_EQ(opened[0].start.records, 200U);
  opened = all<job::OpenPhase>(step(job::PhaseDrained{2}));
  EXPECT_EQ(opened.at(0).start.epoch, Epoch{1});
  train_done(3);
  opened = all<job::OpenPhase>(step(job::PhaseDrained{4}));
  EXPECT_EQ(opened.at(0).start.what, wire::PhaseKind::kFinish);
  step(job::CheckpointStored{1, ""});
  EXPECT_TRUE(all<job::End>(step(job::Exited{w(0), code(0)})).empty());
  const auto end = all<job::End>(step(job::Exited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
  EXPECT_EQ(life.state(), JobState::kDone);
}

TEST_F(LifecycleTest, WhoJoinsBeforeItIsSaidToRunIsKnownAllTheSame) {
  hosts();
  step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  comes_up(w(0));
  step(job::Joined{w(1), true});
  const Effects said = step(job::Started{w(1), 101});
  EXPECT_THAT(all<job::Note>(said), ::testing::SizeIs(1));
  EXPECT_EQ(state_of(w(1).worker), "joined");
  EXPECT_EQ(life.find(w(1).worker)->pid, 101U);
  EXPECT_EQ(life.state(), JobState::kForming);
  EXPECT_THAT(step(job::Started{w(1), 101}), ::testing::IsEmpty()) << "said again";
}

TEST_F(LifecycleTest, EverybodyStaysUntilTheModelIsStored) {
  train();
  train_done(1);
  step(job::PhaseDrained{2});
  train_done(3);
  EXPECT_TRUE(all<job::LeaveAll>(step(job::PhaseDrained{4})).empty());
  const auto leave = all<job::LeaveAll>(step(job::CheckpointStored{1, ""}));
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].leave.code, 0U);
}

TEST_F(LifecycleTest, WhoJoinsAfterTheModelIsKeptLeavesAlsoIfTheDaemonRestartsMeanwhile) {
  train();
  train_done(1);
  step(job::PhaseDrained{2});
  train_done(3);
  step(job::PhaseDrained{4});
  step(job::CheckpointStored{1, ""});
  step(job::Exited{w(0), code(0)});
  const Effects late = step(job::Joined{w(1), true});
  ASSERT_EQ(all<job::LeaveWorker>(late).size(), 1U);
  ASSERT_EQ(all<job::SaveImage>(late).size(), 1U);
  next_incarnation({w(1)});
  const auto end = all<job::End>(step(job::Exited{w(1), code(kExitResumable)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, "done");
}

TEST_F(LifecycleTest, AModelThatCannotBeKeptYetIsWaitedForAndWhatIsWrongIsSaidOnce) {
  train();
  train_done(1);
  step(job::PhaseDrained{2});
  train_done(3);
  step(job::PhaseDrained{4});
  const auto notes = all<job::Note>(step(job::CheckpointStored{1, "no space left on device"}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0].text, testing::HasSubstr("no space left"));
  EXPECT_EQ(life.state(), JobState::kFinishing);
  EXPECT_TRUE(all<job::Note>(step(job::CheckpointStored{1, "no space left on device"})).empty());
  EXPECT_EQ(all<job::LeaveAll>(step(job::CheckpointStored{1, ""})).at(0).leave.code, 0U);
  step(job::Exited{w(0), code(0)});
  const auto end = all<job::End>(step(job::Exited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, ACheckpointOfWhichNothingIsHeardIsOrderedAgain) {
  train();
  const auto ordered = [&](Duration later) {
    clock.advance(later);
    return all<job::OrderCheckpoint>(step(job::Tick{})).size();
  };
  ASSERT_EQ(ordered(seconds(60)), 1U);
  EXPECT_EQ(ordered(seconds(299)), 0U);
  EXPECT_EQ(ordered(seconds(2)), 1U);
}

TEST_F(LifecycleTest, ATrainingPhaseWaitsForTheLastMemberToLeaveTheCollective) {
  train();
  step(job::MemberDone{w(0), 1});
  EXPECT_TRUE(all<job::OpenPhase>(step(job::PhaseDrained{1})).empty());
  EXPECT_EQ(all<job::OpenPhase>(step(job::MemberDone{w(1), 1})).size(), 1U);
}

TEST_F(LifecycleTest, APhaseDoesNotWaitForAMemberThatDied) {
  use(bears({{"signal", 1}}));
  train(3);
  step(job::MemberDone{w(0), 1});
  step(job::MemberDone{w(1), 1});
  step(job::PhaseDrained{1});
  step(job::Exited{w(2), killed(SIGKILL)});
  // The group meets anew: whoever is in it has heard of the phase again.
  step(job::GenerationOver{});
  const auto announced = all<job::AnnouncePhase>(settle({w(0), w(1)}));
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0].start.phase, 1U);
  step(job::MemberDone{w(0), 1});
  EXPECT_EQ(all<job::OpenPhase>(step(job::MemberDone{w(1), 1})).size(), 1U);
}

TEST_F(LifecycleTest, NoPhaseOpensWhileTheGroupMeetsAnew) {
  train();
  step(job::MemberDone{w(0), 1});
  step(job::MemberDone{w(1), 1});
  step(job::GenerationOver{});
  EXPECT_TRUE(all<job::OpenPhase>(step(job::PhaseDrained{1})).empty());
}

TEST_F(LifecycleTest, AnotherPhasesEndChangesNothing) {
  train();
  EXPECT_TRUE(step(job::PhaseDrained{7}).empty());
}

// ------------------------------------------------------------------------- stops

TEST_F(LifecycleTest, AStopWritesACheckpointFirstAndThenEverybodyLeaves) {
  train();
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
  train();
  step(job::StopAsked{"operator", seconds(10)});
  clock.advance(seconds(11));
  const auto stops = all<job::StopWorker>(step(job::Tick{}));
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[0].grace, Duration::zero());
}

TEST_F(LifecycleTest, AStopWhileTheGroupMeetsAnewWritesNoCheckpointAndStopsTheProcesses) {
  train();
  step(job::GenerationOver{});
  const Effects stop = step(job::StopAsked{"operator", seconds(10)});
  EXPECT_TRUE(all<job::OrderCheckpoint>(stop).empty());
  EXPECT_EQ(all<job::StopWorker>(stop).size(), 2U);
}

TEST_F(LifecycleTest, AStopWhoseCheckpointIsLostWithItsGenerationStopsTheProcesses) {
  train();
  step(job::StopAsked{"operator", seconds(10)});
  EXPECT_EQ(all<job::StopWorker>(step(job::GenerationOver{})).size(), 2U);
}

TEST_F(LifecycleTest, AStopThatIsNotAnsweredEndsTheJobAllTheSame) {
  train();
  step(job::StopAsked{"operator", Duration::zero()});
  clock.advance(seconds(6));
  EXPECT_TRUE(all<job::End>(step(job::Tick{})).empty()) << "killed first";
  clock.advance(seconds(6));
  EXPECT_EQ(all<job::End>(step(job::Tick{})).at(0).outcome.code, 75);
}

// ------------------------------------------------------------------- checkpoints

TEST_F(LifecycleTest, CheckpointsAreOrderedOneAtATimeAtTheirInterval) {
  train();
  EXPECT_TRUE(all<job::OrderCheckpoint>(step(job::Tick{})).empty());
  clock.advance(seconds(61));
  EXPECT_EQ(all<job::OrderCheckpoint>(step(job::Tick{})).size(), 1U);
  clock.advance(seconds(61));
  EXPECT_TRUE(step(job::Tick{}).empty()) << "the first one is not stored yet";
  step(job::CheckpointStored{1, ""});
  EXPECT_EQ(all<job::OrderCheckpoint>(step(job::Tick{})).size(), 1U);
}

TEST_F(LifecycleTest, ACheckpointThatDiedWithItsGenerationIsOrderedAgain) {
  train();
  clock.advance(seconds(61));
  step(job::Tick{});
  step(job::GenerationOver{});
  settle({w(0), w(1)});
  clock.advance(seconds(61));
  EXPECT_EQ(all<job::OrderCheckpoint>(step(job::Tick{})).at(0).number, 2U);
}

// ------------------------------------------------------- other kinds of members

TEST_F(LifecycleTest, APlainProgramIsDoneWhenAllItsProcessesAre) {
  JobSpec s = spec();
  s.protocol = Protocol::kTorchrun;
  use(s);
  hosts();
  const Effects placed = step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "a", 0}}});
  EXPECT_EQ(all<job::PrepareGang>(placed).size(), 1U);
  EXPECT_TRUE(all<job::StartWorker>(placed).empty()) << "a port is needed first";
  EXPECT_EQ(all<job::StartWorker>(step(job::GangReady{})).size(), 2U);
  step(job::Started{w(0), 1});
  step(job::Started{w(1), 2});
  EXPECT_EQ(life.state(), JobState::kTraining);
  EXPECT_TRUE(all<job::End>(step(job::Exited{w(0), code(0)})).empty());
  const auto end = all<job::End>(step(job::Exited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, LooseMembersOpenTheFirstPhaseAlone) {
  hosts();
  step(job::Placed{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(job::Started{w(0), 100});
  EXPECT_EQ(all<job::OpenPhase>(step(job::Joined{w(0), false})).size(), 1U);
  EXPECT_EQ(all<job::OpenPhase>(step(job::PhaseDrained{1})).at(0).start.what,
            wire::PhaseKind::kEval);
}

// --------------------------------------------------------- restarts and resumes

TEST_F(LifecycleTest, TheImageBringsBackWhereTheJobStood) {
  train();
  train_done(1);
  clock.advance(seconds(5));
  const double seconds_before = life.seconds();
  next_incarnation({w(0), w(1)});
  EXPECT_EQ(life.state(), JobState::kEvaluating);
  EXPECT_EQ(life.phase().phase, 2U);
  EXPECT_TRUE(life.is_current(w(1)));
  EXPECT_EQ(life.seconds(), seconds_before);
  ASSERT_EQ(life.hosts().all().size(), 2U);
  EXPECT_FALSE(life.hosts().all()[0].up) << "until its agent says so";
}

TEST_F(LifecycleTest, AResumedRunBeginsANewAttemptOfEverybody) {
  train();
  step(job::StopAsked{"operator", Duration::zero()});
  step(job::Exited{w(0), killed(SIGTERM)});
  step(job::Exited{w(1), killed(SIGTERM)});
  ASSERT_EQ(life.state(), JobState::kStopped);
  next_incarnation({w(0), w(1)});
  step(job::Resumed{});
  EXPECT_FALSE(life.outcome());
  EXPECT_EQ(state_of(w(0).worker), "waiting");
  auto started = all<job::StartWorker>(step(job::HostUp{host("a", 0)}));
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0].member, w(0, 2));
  EXPECT_EQ(life.state(), JobState::kForming);
}

TEST_F(LifecycleTest, TrainingGoesOnInThePhaseOfTheCheckpoint) {
  train();
  train_done(1);
  step(job::PhaseDrained{2});
  ASSERT_EQ(life.phase().phase, 3U);
  step(job::Restored{1});
  EXPECT_EQ(life.phase().what, wire::PhaseKind::kTrain);
  EXPECT_EQ(life.phase().epoch, Epoch{0});
  EXPECT_EQ(life.state(), JobState::kTraining);
  const Effects settled = settle({w(0), w(1)});
  EXPECT_EQ(all<job::AnnouncePhase>(settled).at(0).start.phase, 1U);
  EXPECT_TRUE(all<job::OpenPhase>(settled).empty());
  step(job::Restored{0});
  EXPECT_EQ(all<job::OpenPhase>(settle({w(0), w(1)})).at(0).start.phase, 1U);
}

}  // namespace
}  // namespace antdt::ctl
