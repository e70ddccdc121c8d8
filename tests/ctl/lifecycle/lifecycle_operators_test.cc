// Tests of operators' requests: evictions and other numbers of workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/lifecycle/lifecycle.h"
#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

using testing::HasSubstr;

lifecycle::EvictionRequested evict(const std::string& target) {
  return {target, "a test", seconds(30)};
}

TEST_F(LifecycleTest, AnEvictedWorkerLeavesByItselfAndComesBackElsewhere) {
  train(3);  // w0 and w2 on a, w1 on b
  const Effects asked = step(evict("w1"));
  const auto leaves = all<lifecycle::AskToLeave>(asked);
  ASSERT_EQ(leaves.size(), 1U);
  EXPECT_EQ(leaves[0].member, w(1));
  EXPECT_TRUE(all<lifecycle::StopWorker>(asked).empty());
  step(lifecycle::HostCameUp{host("c", 2)});
  const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  EXPECT_TRUE(all<lifecycle::ReleaseWorker>(left).at(0).in_order);
  EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).member, w(1, 2));
  EXPECT_EQ(all<lifecycle::StartWorker>(left)[0].host, "c");
  EXPECT_TRUE(life.failures().empty());
  EXPECT_FALSE(life.outcome()) << "its 75 is our wish, not its own";
}

TEST_F(LifecycleTest, ARequestToLeaveThatWasLostIsRepeatedUntilTheWorkerHasLeft) {
  train(4);
  step(evict("w1"));  // lost with the agent that was to pass it on
  for (int time = 0; time < 3; ++time) {
    clock.advance(seconds(2));
    const auto again = all<lifecycle::AskToLeave>(step(lifecycle::TimePassed{}));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].member, w(1));
    EXPECT_TRUE(all<lifecycle::AskToLeave>(step(lifecycle::TimePassed{})).empty()) << "too soon";
  }
  step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  clock.advance(seconds(2));
  EXPECT_TRUE(all<lifecycle::AskToLeave>(step(lifecycle::TimePassed{})).empty());
}

TEST_F(LifecycleTest, TheNextIncarnationRepeatsARequestToLeave) {
  train(4);
  step(evict("w1"));
  next_incarnation({w(0), w(1), w(2), w(3)});
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(lifecycle::TimePassed{})).at(0).member, w(1));
}

TEST_F(LifecycleTest, AWorkerThatIsKilledAtItsDeadlineIsSaidToBe) {
  train(4);
  step(evict("w1"));
  clock.advance(seconds(30));
  const Effects late = step(lifecycle::TimePassed{});
  EXPECT_EQ(all<lifecycle::StopWorker>(late).at(0).grace, Duration::zero());
  const auto notes = all<lifecycle::WriteNote>(late);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].kind, "killed-late");
  EXPECT_THAT(notes[0].text, testing::StartsWith("w1 (attempt 1) was asked to leave"));
  clock.advance(seconds(1));
  EXPECT_TRUE(step(lifecycle::TimePassed{}).empty()) << "said and asked once";
}

TEST_F(LifecycleTest, WithoutAnotherHostTheShareOfAnEvictedWorkerIsSpread) {
  train(4);
  step(evict("w1"));
  const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(left).empty());
  EXPECT_EQ(state_of(w(1).worker), "removed");
  EXPECT_FALSE(all<lifecycle::ExpectMembers>(left).empty());
  EXPECT_EQ(running(), 3);
}

TEST_F(LifecycleTest, AWorkerThatIsStartedAgainGoesToAnotherHost) {
  hosts(4);
  train(4);
  const lifecycle::RestartRequested asked{w(1), "slow", seconds(30)};
  ASSERT_TRUE(life.check(asked));
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(asked)).at(0).member, w(1));
  EXPECT_THAT(life.check(asked).error().message, HasSubstr("leaves already"));
  const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).member, w(1, 2));
  EXPECT_EQ(all<lifecycle::StartWorker>(left)[0].host, "a");
  EXPECT_TRUE(life.failures().empty());
  EXPECT_THAT(life.check(asked).error().message, HasSubstr("does not run any more"));
}

TEST_F(LifecycleTest, AWorkerThatIsStartedAgainGoesToTheHostThatWasChosenForItIfThatHasRoom) {
  for (const std::uint32_t room_on_c : {1U, 0U}) {
    use(spec());
    hosts(4);
    step(lifecycle::HostCameUp{host("c", 2, room_on_c)});
    train(4);
    step(lifecycle::RestartRequested{w(1), "slow", seconds(30), "c"});
    next_incarnation({w(0), w(1), w(2), w(3)});
    hosts(4);
    step(lifecycle::HostCameUp{host("c", 2, room_on_c)});
    const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
    ASSERT_EQ(all<lifecycle::StartWorker>(left).size(), 1U);
    EXPECT_EQ(all<lifecycle::StartWorker>(left)[0].host, room_on_c == 0 ? "a" : "c")
        << "host a has more room than c";
  }
}

TEST_F(LifecycleTest, AWorkerThatIsStartedAgainComesBackWhereItWasIfNobodyElseHasRoom) {
  train(4);
  step(lifecycle::RestartRequested{w(1), "slow", seconds(30)});
  const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).member, w(1, 2));
  EXPECT_EQ(all<lifecycle::StartWorker>(left)[0].host, "b");
}

TEST_F(LifecycleTest, WorkersOfAGangAreNotStartedAgainOneByOne) {
  JobSpec gang = spec();
  gang.restart = Restart::kGang;
  use(gang);
  train(2);
  const auto refused = life.check(lifecycle::RestartRequested{w(1), "slow", seconds(30)});
  EXPECT_THAT(refused.error().message, HasSubstr("all together"));
}

TEST_F(LifecycleTest, AWorkerThatDoesNotLeaveByItsDeadlineIsEnded) {
  train(3);
  step(evict("w1"));
  clock.advance(seconds(29));
  EXPECT_TRUE(all<lifecycle::StopWorker>(step(lifecycle::TimePassed{})).empty());
  clock.advance(seconds(2));
  const auto stops = all<lifecycle::StopWorker>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].grace, Duration::zero());
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_TRUE(life.failures().empty());
}

TEST_F(LifecycleTest, AnEvictedHostGetsNoMoreWorkers) {
  use(bears({{"signal", 9}}));
  hosts();
  step(lifecycle::HostCameUp{host("c", 2, 4)});
  train(4);
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(evict("b"))).size(), 2U);
  for (const std::uint32_t i : {1U, 3U}) {
    const Effects left = step(lifecycle::WorkerExited{w(i), code(kExitResumable)});
    EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).host, "c");
  }
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(1, 2), killed(SIGKILL)}))
                .at(0)
                .host,
            "c");
}

TEST_F(LifecycleTest, TheLastWorkerIsNotEvictedWhereNoOtherHostIsThere) {
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}}});
  comes_up(w(0));
  step(lifecycle::HostLost{"b", "silent"});
  EXPECT_THAT(life.check(evict("w0")).error().message, HasSubstr("nobody would be left"));
  EXPECT_THAT(life.check(evict("w7")).error().message, HasSubstr("neither a worker nor a host"));
}

TEST_F(LifecycleTest, TheLastWorkerComesBackWhereTheHostThatItShouldGoToIsLostMeanwhile) {
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}}});
  comes_up(w(0));
  ASSERT_TRUE(life.check(evict("w0")));
  step(evict("w0"));
  step(lifecycle::HostLost{"b", "silent"});
  const Effects left = step(lifecycle::WorkerExited{w(0), code(kExitResumable)});
  EXPECT_TRUE(all<lifecycle::EndJob>(left).empty());
  const auto again = all<lifecycle::StartWorker>(left);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].member, w(0, 2));
}

TEST_F(LifecycleTest, ALeavingWorkerIsWantedAgainWhenNobodyElseIsLeft) {
  use(bears({{"signal", 0}, {"host", 9}}));
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  comes_up(w(0));
  comes_up(w(1));
  settle({w(0), w(1)});
  step(lifecycle::WorkerCountRequested{1, "a test"});
  step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  ASSERT_EQ(state_of(w(1).worker), "removed");
  step(evict("w0"));
  step(lifecycle::HostLost{"b", "silent"});
  const Effects left = step(lifecycle::WorkerExited{w(0), code(kExitResumable)});
  EXPECT_TRUE(all<lifecycle::EndJob>(left).empty());
  EXPECT_EQ(all<lifecycle::StartWorker>(left).size(), 1U);
}

TEST_F(LifecycleTest, ARunResumedInAPhaseThatIsCompleteWaitsForItsMembersAllTheSame) {
  train();
  next_incarnation({});
  step(lifecycle::RunResumed{});
  step(lifecycle::HostCameUp{host("a", 0, 2)});
  step(lifecycle::TimePassed{});
  const std::vector<Member> members{w(0, 2), w(1, 2)};
  for (const Member member : members) {
    step(lifecycle::WorkerStarted{member, 7});
    step(lifecycle::WorkerJoined{member, true});
    ASSERT_TRUE(life.is_current(member));
  }
  step(lifecycle::PhaseDrained{1});
  const Effects settled = step(lifecycle::GenerationSettled{Generation{2}, members});
  EXPECT_EQ(life.state(), JobState::kTraining);
  EXPECT_TRUE(all<lifecycle::OpenPhase>(step(lifecycle::PhaseDrained{1})).empty());
  EXPECT_EQ(all<lifecycle::AnnouncePhase>(settled).size(), 1U);
}

TEST_F(LifecycleTest, FewerWorkersAreTheFirstOnes) {
  train(4);
  const auto leaves =
      all<lifecycle::AskToLeave>(step(lifecycle::WorkerCountRequested{2, "a test"}));
  ASSERT_EQ(leaves.size(), 2U);
  EXPECT_EQ(leaves[0].member, w(3));
  EXPECT_EQ(leaves[1].member, w(2));
  step(lifecycle::HostCameUp{host("c", 2)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(3), code(kExitResumable)}))
                  .empty());
  EXPECT_EQ(state_of(w(3).worker), "removed");
}

TEST_F(LifecycleTest, TheNumberOfWorkersStaysWithinTheBoundsOfTheJob) {
  JobSpec bounded = spec();
  bounded.fewest_workers = 2;
  bounded.most_workers = 3;
  use(bounded);
  hosts(8);
  train(3);
  for (const std::uint32_t count : {1U, 4U}) {
    const auto outside = life.check(lifecycle::WorkerCountRequested{count, "a test"});
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(outside.error().message, HasSubstr("roles.worker.count = { min = 2, max = 3 }"));
    EXPECT_TRUE(step(lifecycle::WorkerCountRequested{count, "a solution"}).empty());
  }
  EXPECT_TRUE(life.check(lifecycle::WorkerCountRequested{2, "a test"}));
}

TEST_F(LifecycleTest, ARemovedWorkerDoesNotComeBackWithTheRun) {
  train(3);
  step(lifecycle::WorkerCountRequested{2, "a test"});
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  for (const Member member : {w(0), w(1), w(2)})
    step(lifecycle::WorkerExited{member, killed(SIGTERM)});
  ASSERT_EQ(life.state(), JobState::kStopped);
  next_incarnation({});
  step(lifecycle::RunResumed{});
  EXPECT_EQ(state_of(w(1).worker), "waiting");
  EXPECT_EQ(state_of(w(2).worker), "removed");
}

TEST_F(LifecycleTest, AJobThatIsStoppedWhileItEvaluatesWritesACheckpointFirst) {
  for (const SyncStrategy sync :
       {SyncStrategy::kAllReduce, SyncStrategy::kPsBsp, SyncStrategy::kHybrid}) {
    JobSpec s = spec();
    s.sync = sync;
    use(s);
    train();
    train_done(1);
    ASSERT_EQ(life.state(), JobState::kEvaluating);
    const auto effects = step(lifecycle::StopRequested{"operator", seconds(10)});
    const bool writes = sync != SyncStrategy::kHybrid;
    EXPECT_EQ(all<lifecycle::OrderCheckpoint>(effects).size(), writes ? 1U : 0U) << name_of(sync);
    EXPECT_EQ(all<lifecycle::StopWorker>(effects).size(), writes ? 0U : 2U) << name_of(sync);
    if (!writes) continue;
    const auto stored = step(lifecycle::CheckpointConcluded{1, ""});
    EXPECT_EQ(all<lifecycle::AskAllToLeave>(stored).size(), 1U);
    EXPECT_TRUE(life.outcome()->resumable);
  }
}

TEST_F(LifecycleTest, ARunOfWhichEverybodyWasToLeaveIsResumedWithOne) {
  train(2);
  step(lifecycle::WorkerCountRequested{1, "a test"});
  step(evict("w0"));
  LifecycleImage image = life.image();
  for (WorkerProcessImage& worker : image.workers) worker.stays_away = true;
  next_incarnation(image, {w(0), w(1)});
  step(lifecycle::RunResumed{});
  EXPECT_EQ(state_of(w(0).worker), "waiting");
  EXPECT_EQ(state_of(w(1).worker), "removed");
}

TEST_F(LifecycleTest, MoreWorkersAreNewOnesAndThoseThatHadLeft) {
  hosts(4);
  train(3);
  step(lifecycle::WorkerCountRequested{2, "a test"});
  step(lifecycle::WorkerExited{w(2), code(kExitResumable)});
  const Effects more = step(lifecycle::WorkerCountRequested{5, "a test"});
  const auto started = all<lifecycle::StartWorker>(more);
  ASSERT_EQ(started.size(), 3U);
  EXPECT_EQ(started[0].member, w(2, 2)) << "a number is never used twice";
  EXPECT_EQ(started[1].member, w(3));
  EXPECT_EQ(started[2].member, w(4));
  EXPECT_FALSE(all<lifecycle::ExpectMembers>(more).empty());
  EXPECT_EQ(running(), 5);
}

TEST_F(LifecycleTest, MoreWorkersThanTheHostsHaveRoomForAreRefusedWithTheReason) {
  train(4);
  const Status refused = life.check(lifecycle::WorkerCountRequested{5, "a test"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("room for 0 more than the 4"));
  EXPECT_FALSE(life.check(lifecycle::WorkerCountRequested{0, "a test"}));
  EXPECT_TRUE(life.check(lifecycle::WorkerCountRequested{3, "a test"}));
}

TEST_F(LifecycleTest, AWorkerThatDiesBeforeItLeavesIsNotStartedAgainWhenFewerAreWanted) {
  use(bears({{"signal", 9}}));
  train(4);
  step(lifecycle::WorkerCountRequested{3, "a test"});
  const Effects died = step(lifecycle::WorkerExited{w(3), killed(SIGKILL)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(died).empty());
  EXPECT_EQ(state_of(w(3).worker), "removed");
}

TEST_F(LifecycleTest, TheDeadlineOfAnEvictionOutlivesTheJobDaemon) {
  train(4);
  step(lifecycle::EvictionRequested{"w1", "slow", seconds(30)});
  next_incarnation({w(0), w(1), w(2), w(3)});
  EXPECT_TRUE(all<lifecycle::StopWorker>(step(lifecycle::TimePassed{})).empty());
  clock.advance(seconds(31));
  const auto stops = all<lifecycle::StopWorker>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].member, w(1));
  EXPECT_EQ(stops[0].grace, Duration::zero());
}

TEST_F(LifecycleTest, AStopThatAnEarlierIncarnationDecidedIsRepeated) {
  train();
  step(lifecycle::StopRequested{"operator", seconds(10)});
  next_incarnation({w(0), w(1)});
  EXPECT_EQ(all<lifecycle::StopWorker>(step(lifecycle::TimePassed{})).size(), 2U);
}

TEST_F(LifecycleTest, AnEndThatWasDecidedAndNotToldIsToldByTheNextIncarnation) {
  train();
  step(lifecycle::StopRequested{"operator", Duration::zero()});
  step(lifecycle::WorkerExited{w(0), {75, 0, "", "", ""}});
  ASSERT_EQ(all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), {75, 0, "", "", ""}})).size(),
            1U);
  next_incarnation({});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 75);
}

TEST_F(LifecycleTest, TheLastWorkerThatLeavesWithTheTrainedModelDoesNotEndTheJob) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  step(lifecycle::CheckpointConcluded{1, "no space left on device"});
  step(lifecycle::WorkerExited{w(0), code(0)});
  step(evict("w1"));
  const Effects left = step(lifecycle::WorkerExited{w(1), code(75)});
  EXPECT_TRUE(all<lifecycle::EndJob>(left).empty());
  EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).member, w(1, 2)) << "from the last checkpoint";
  EXPECT_TRUE(life.welcomes(w(1, 2)));
}

TEST_F(LifecycleTest, AJobWhoseWorkersEndBeforeTheModelIsKeptIsNotDone) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  step(lifecycle::WorkerExited{w(0), code(0)});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(0)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, JobEnd::kFailed);
}

TEST_F(LifecycleTest, TheNextIncarnationReportsTheActionAsDone) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  step(lifecycle::CheckpointConcluded{1, ""});
  step(lifecycle::WorkerExited{w(0), code(0)});
  ASSERT_EQ(all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), code(0)})).size(), 1U);
  next_incarnation({});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, JobEnd::kDone);
  EXPECT_EQ(end[0].outcome.code, 0);
}

TEST_F(LifecycleTest, ARunThatIsResumedAtItsVeryEndWelcomesItsWorkers) {
  train();
  train_done(1);
  step(lifecycle::PhaseDrained{2});
  train_done(3);
  step(lifecycle::PhaseDrained{4});
  step(lifecycle::CheckpointConcluded{1, ""});
  ASSERT_FALSE(life.welcomes(w(0)));
  next_incarnation({});
  step(lifecycle::RunResumed{});
  EXPECT_TRUE(life.welcomes({w(0).worker, Attempt{2}}));
}

}  // namespace
}  // namespace antdt::ctl
