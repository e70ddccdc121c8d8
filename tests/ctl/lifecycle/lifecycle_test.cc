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
  auto opened = all<lifecycle::OpenPhase>(settle({w(0), w(1)}));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, wire::PhaseKind::kTrain);
  EXPECT_EQ(opened[0].start.records, 800U);
  opened = all<lifecycle::OpenPhase>(train_done(1));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].start.what, wire::PhaseKind::kEval);
  EXPECT_EQ(opened[0].start.records, 200U);
  opened = all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{2}));
  EXPECT_EQ(opened.at(0).start.epoch, Epoch{1});
  train_done(3);
  opened = all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{4}));
  EXPECT_EQ(opened.at(0).start.what, wire::PhaseKind::kFinish);
  step(lifecycle::CheckpointConcluded{1, ""});
  EXPECT_TRUE(all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), code(0)})).empty());
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
  EXPECT_EQ(life.state(), JobState::kDone);
}

TEST_F(LifecycleTest, AProgramEndsTheTrainingInItsFirstEpoch) {
  train();
  const Effects said = step(lifecycle::TrainingEnded{"the loss stands still"});
  const auto cut = all<lifecycle::CutPhase>(said);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].phase, 1U);
  EXPECT_EQ(cut[0].reason, "the loss stands still");
  ASSERT_EQ(all<lifecycle::PersistImage>(said).size(), 1U);
  EXPECT_TRUE(step(lifecycle::TrainingEnded{"of another member"}).empty());
  next_incarnation({w(0), w(1)});
  step(lifecycle::WorkerDone{w(0), 1});
  step(lifecycle::WorkerDone{w(1), 1});
  const auto opened = all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{1, 30}));
  EXPECT_EQ(opened.at(0).start.what, wire::PhaseKind::kEval);
  const auto last = all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{2, 200}));
  EXPECT_EQ(last.at(0).start.what, wire::PhaseKind::kFinish);
  EXPECT_EQ(last.at(0).start.epoch, Epoch{1});
  EXPECT_EQ(life.training_ends()->reason, "the loss stands still");
}

TEST_F(LifecycleTest, AProgramThatEndsTheTrainingBeforeOrAfterItChangesNothing) {
  start();
  EXPECT_TRUE(step(lifecycle::TrainingEnded{"too early"}).empty());
  settle({w(0), w(1)});
  train_done(1);
  step(lifecycle::PhaseDrained{2, 200});
  train_done(3);
  step(lifecycle::PhaseDrained{4, 200});
  EXPECT_TRUE(step(lifecycle::TrainingEnded{"too late"}).empty());
}

TEST_F(LifecycleTest, AWorkerThatJoinsBeforeItsStartIsReportedIsKnown) {
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  comes_up(w(0));
  step(lifecycle::WorkerJoined{w(1), true});
  const Effects said = step(lifecycle::WorkerStarted{w(1), 101});
  EXPECT_THAT(all<lifecycle::WriteNote>(said), ::testing::SizeIs(1));
  EXPECT_EQ(state_of(w(1).worker), "joined");
  EXPECT_EQ(life.find(w(1).worker)->pid, 101U);
  EXPECT_EQ(life.state(), JobState::kForming);
  EXPECT_THAT(step(lifecycle::WorkerStarted{w(1), 101}), ::testing::IsEmpty()) << "said again";
}

TEST_F(LifecycleTest, EverybodyStaysUntilTheModelIsStored) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  EXPECT_TRUE(all<lifecycle::AskAllToLeave>(step(lifecycle::PhaseDrained{4})).empty());
  const auto leave = all<lifecycle::AskAllToLeave>(step(lifecycle::CheckpointConcluded{1, ""}));
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].leave.code, 0U);
}

TEST_F(LifecycleTest, AWorkerThatJoinsAfterTheModelIsKeptLeavesAlsoAfterADaemonRestart) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  step(lifecycle::CheckpointConcluded{1, ""});
  step(lifecycle::WorkerExited{w(0), code(0)});
  const Effects late = step(lifecycle::WorkerJoined{w(1), true});
  ASSERT_EQ(all<lifecycle::AskToLeave>(late).size(), 1U);
  ASSERT_EQ(all<lifecycle::PersistImage>(late).size(), 1U);
  next_incarnation({w(1)});
  const auto end =
      all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(kExitResumable)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, JobEnd::kDone);
}

TEST_F(LifecycleTest, AModelThatCannotBeKeptYetIsWaitedForAndTheErrorReportedOnce) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  const auto notes =
      all<lifecycle::WriteNote>(step(lifecycle::CheckpointConcluded{1, "no space left on device"}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0].text, testing::HasSubstr("no space left"));
  EXPECT_EQ(life.state(), JobState::kFinishing);
  EXPECT_TRUE(
      all<lifecycle::WriteNote>(step(lifecycle::CheckpointConcluded{1, "no space left on device"}))
          .empty());
  EXPECT_EQ(
      all<lifecycle::AskAllToLeave>(step(lifecycle::CheckpointConcluded{1, ""})).at(0).leave.code,
      0U);
  step(lifecycle::WorkerExited{w(0), code(0)});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, ACheckpointOfWhichNothingIsHeardIsOrderedAgain) {
  train();
  const auto ordered = [&](Duration later) {
    clock.advance(later);
    return all<lifecycle::OrderCheckpoint>(step(lifecycle::TimePassed{})).size();
  };
  ASSERT_EQ(ordered(seconds(60)), 1U);
  EXPECT_EQ(ordered(seconds(299)), 0U);
  EXPECT_EQ(ordered(seconds(2)), 1U);
}

TEST_F(LifecycleTest, ATrainingPhaseWaitsForTheLastMemberToLeaveTheCollective) {
  train();
  step(lifecycle::WorkerDone{w(0), 1});
  EXPECT_TRUE(all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{1})).empty());
  EXPECT_EQ(all<lifecycle::OpenPhase>(step(lifecycle::WorkerDone{w(1), 1})).size(), 1U);
}

TEST_F(LifecycleTest, APhaseDoesNotWaitForAMemberThatDied) {
  use(bears({{"signal", 1}}));
  train(3);
  step(lifecycle::WorkerDone{w(0), 1});
  step(lifecycle::WorkerDone{w(1), 1});
  step(lifecycle::PhaseDrained{1});
  step(lifecycle::WorkerExited{w(2), killed(SIGKILL)});
  // The group forms again, and its members have been told of the phase again.
  step(lifecycle::GenerationEnded{});
  const auto announced = all<lifecycle::AnnouncePhase>(settle({w(0), w(1)}));
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0].start.phase, 1U);
  step(lifecycle::WorkerDone{w(0), 1});
  EXPECT_EQ(all<lifecycle::OpenPhase>(step(lifecycle::WorkerDone{w(1), 1})).size(), 1U);
}

// Under shadow-easgd: all records are committed before the last exchange of each replica is.
class ReplicasOnServers : public LifecycleTest {
 protected:
  void SetUp() override {
    JobSpec job = bears({{"signal", 1}});
    job.servers = 1;
    job.sync = SyncStrategy::kShadowEasgd;
    use(job);
    hosts();
    step(lifecycle::WorkersPlaced{
        {{{'s', 0}, "a", 0}, {w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
    for (const Member m : {Member{{'s', 0}, Attempt{1}}, w(0), w(1)}) {
      step(lifecycle::WorkerStarted{m, 100});
      step(lifecycle::WorkerJoined{m, false});
    }
    settle({w(0), w(1)});
    step(lifecycle::StepCompleted{Step{1}});
  }
  std::size_t opened(const lifecycle::Input& input) {
    return all<lifecycle::OpenPhase>(step(input)).size();
  }
};

TEST_F(ReplicasOnServers, APhaseWaitsForTheirLastExchanges) {
  EXPECT_EQ(opened(lifecycle::WorkerDone{w(0), 1}), 0U);
  EXPECT_EQ(opened(lifecycle::PhaseDrained{1}), 0U);
  EXPECT_EQ(opened(lifecycle::WorkerDone{w(1), 1}), 1U);
}

TEST_F(ReplicasOnServers, APhaseDoesNotWaitForOneThatDied) {
  step(lifecycle::WorkerDone{w(0), 1});
  step(lifecycle::PhaseDrained{1});
  EXPECT_EQ(opened(lifecycle::WorkerExited{w(1), killed(SIGKILL)}), 0U);
  EXPECT_EQ(opened(lifecycle::WorkerDone{w(0), 1}), 1U) << "it says so again and again";
}

TEST_F(LifecycleTest, NoPhaseOpensWhileTheGroupMeetsAnew) {
  train();
  step(lifecycle::WorkerDone{w(0), 1});
  step(lifecycle::WorkerDone{w(1), 1});
  step(lifecycle::GenerationEnded{});
  EXPECT_TRUE(all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{1})).empty());
}

TEST_F(LifecycleTest, AnotherPhasesEndChangesNothing) {
  train();
  EXPECT_TRUE(step(lifecycle::PhaseDrained{7}).empty());
}

// ------------------------------------------------------------------------- stops

TEST_F(LifecycleTest, AStopWritesACheckpointFirstAndThenEverybodyLeaves) {
  train();
  const Effects stop = step(lifecycle::StopRequested{"operator", seconds(10)});
  EXPECT_EQ(all<lifecycle::OrderCheckpoint>(stop).size(), 1U);
  EXPECT_TRUE(all<lifecycle::StopWorker>(stop).empty());
  const Effects stored = step(lifecycle::CheckpointConcluded{1, ""});
  ASSERT_EQ(all<lifecycle::AskAllToLeave>(stored).size(), 1U);
  step(lifecycle::WorkerExited{w(0), code(75)});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(75)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 75);
  EXPECT_TRUE(end[0].outcome.resumable);
}

TEST_F(LifecycleTest, AStopWhoseGracePassesKills) {
  train();
  step(lifecycle::StopRequested{"operator", seconds(10)});
  clock.advance(seconds(11));
  const auto stops = all<lifecycle::StopWorker>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[0].grace, Duration::zero());
}

TEST_F(LifecycleTest, AStopWhileTheGroupMeetsAnewWritesNoCheckpointAndStopsTheProcesses) {
  train();
  step(lifecycle::GenerationEnded{});
  const Effects stop = step(lifecycle::StopRequested{"operator", seconds(10)});
  EXPECT_TRUE(all<lifecycle::OrderCheckpoint>(stop).empty());
  EXPECT_EQ(all<lifecycle::StopWorker>(stop).size(), 2U);
}

TEST_F(LifecycleTest, AStopWhoseCheckpointIsLostWithItsGenerationStopsTheProcesses) {
  train();
  step(lifecycle::StopRequested{"operator", seconds(10)});
  EXPECT_EQ(all<lifecycle::StopWorker>(step(lifecycle::GenerationEnded{})).size(), 2U);
}

TEST_F(LifecycleTest, AStopThatIsNotAnsweredEndsTheJobAllTheSame) {
  train();
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  clock.advance(seconds(6));
  EXPECT_TRUE(all<lifecycle::EndJob>(step(lifecycle::TimePassed{})).empty()) << "killed first";
  clock.advance(seconds(6));
  EXPECT_EQ(all<lifecycle::EndJob>(step(lifecycle::TimePassed{})).at(0).outcome.code, 75);
}

// Otherwise a resumed run would count them in its group, beside their next attempts.
TEST_F(LifecycleTest, WorkersWhoseAgentDoesNotAnswerTheLastStopLeaveTheGroup) {
  train(3);
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  step(lifecycle::WorkerExited{w(1), code(75)});
  clock.advance(seconds(6));
  step(lifecycle::TimePassed{});
  clock.advance(seconds(6));
  const auto released = all<lifecycle::ReleaseWorker>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(released.size(), 2U) << "w1 had left before";
  EXPECT_EQ(released[0].member, w(0));
  EXPECT_EQ(released[1].member, w(2));
  EXPECT_FALSE(released[0].suspect);
}

// ------------------------------------------------------------------- checkpoints

TEST_F(LifecycleTest, CheckpointsAreOrderedOneAtATimeAtTheirInterval) {
  train();
  EXPECT_TRUE(all<lifecycle::OrderCheckpoint>(step(lifecycle::TimePassed{})).empty());
  clock.advance(seconds(61));
  EXPECT_EQ(all<lifecycle::OrderCheckpoint>(step(lifecycle::TimePassed{})).size(), 1U);
  clock.advance(seconds(61));
  EXPECT_TRUE(step(lifecycle::TimePassed{}).empty()) << "the first one is not stored yet";
  step(lifecycle::CheckpointConcluded{1, ""});
  EXPECT_EQ(all<lifecycle::OrderCheckpoint>(step(lifecycle::TimePassed{})).size(), 1U);
}

TEST_F(LifecycleTest, ACheckpointThatDiedWithItsGenerationIsOrderedAgain) {
  train();
  clock.advance(seconds(61));
  step(lifecycle::TimePassed{});
  step(lifecycle::GenerationEnded{});
  settle({w(0), w(1)});
  clock.advance(seconds(61));
  EXPECT_EQ(all<lifecycle::OrderCheckpoint>(step(lifecycle::TimePassed{})).at(0).number, 2U);
}

// ------------------------------------------------------- other kinds of members

TEST_F(LifecycleTest, APlainProgramIsDoneWhenAllItsProcessesAre) {
  JobSpec s = spec();
  s.protocol = Protocol::kTorchrun;
  use(s);
  hosts();
  const Effects placed =
      step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "a", 0}}});
  EXPECT_EQ(all<lifecycle::PrepareGang>(placed).size(), 1U);
  EXPECT_TRUE(all<lifecycle::StartWorker>(placed).empty()) << "a port is needed first";
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::GangPrepared{})).size(), 2U);
  step(lifecycle::WorkerStarted{w(0), 1});
  step(lifecycle::WorkerStarted{w(1), 2});
  EXPECT_EQ(life.state(), JobState::kTraining);
  EXPECT_TRUE(all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), code(0)})).empty());
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, LooseMembersOpenTheFirstPhaseAlone) {
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(lifecycle::WorkerStarted{w(0), 100});
  EXPECT_EQ(all<lifecycle::OpenPhase>(step(lifecycle::WorkerJoined{w(0), false})).size(), 1U);
  EXPECT_EQ(all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{1})).at(0).start.what,
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
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
  step(lifecycle::WorkerExited{w(1), killed(SIGTERM)});
  ASSERT_EQ(life.state(), JobState::kStopped);
  next_incarnation({w(0), w(1)});
  step(lifecycle::RunResumed{});
  EXPECT_FALSE(life.outcome());
  EXPECT_EQ(state_of(w(0).worker), "waiting");
  auto started = all<lifecycle::StartWorker>(step(lifecycle::HostCameUp{host("a", 0)}));
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0].member, w(0, 2));
  EXPECT_EQ(life.state(), JobState::kForming);
}

TEST_F(LifecycleTest, TrainingGoesOnInThePhaseOfTheCheckpoint) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  ASSERT_EQ(life.phase().phase, 3U);
  step(lifecycle::CheckpointRestored{1});
  EXPECT_EQ(life.phase().what, wire::PhaseKind::kTrain);
  EXPECT_EQ(life.phase().epoch, Epoch{0});
  EXPECT_EQ(life.state(), JobState::kTraining);
  const Effects settled = settle({w(0), w(1)});
  EXPECT_EQ(all<lifecycle::AnnouncePhase>(settled).at(0).start.phase, 1U);
  EXPECT_TRUE(all<lifecycle::OpenPhase>(settled).empty());
  step(lifecycle::CheckpointRestored{0});
  EXPECT_EQ(all<lifecycle::OpenPhase>(settle({w(0), w(1)})).at(0).start.phase, 1U);
}

}  // namespace
}  // namespace antdt::ctl
