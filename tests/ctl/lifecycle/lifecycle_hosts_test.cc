// Hosts that are lost, have no room, or refuse a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/lifecycle/lifecycle.h"
#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

using testing::HasSubstr;

TEST_F(LifecycleTest, AWorkerOfALostHostIsStartedWhereThereIsRoom) {
  use(bears({{"host", 1}}));
  train();
  const Effects lost = step(lifecycle::HostLost{"b", "silent for 30 s"});
  const auto started = all<lifecycle::StartWorker>(lost);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].member, w(1, 2));
  EXPECT_EQ(started[0].host, "a");
  EXPECT_EQ(class_of(failure()), "host");
}

TEST_F(LifecycleTest, AWorkerOfALostHostIsNotReportedAsImpossibleToExecute) {
  use(bears({{"host", 1}}));
  train();
  const auto gone =
      all<lifecycle::ReleaseWorker>(step(lifecycle::HostLost{"b", "silent for 30 s"}));
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].reason, "w1 was lost: its host b is lost (silent for 30 s)");
  EXPECT_THAT(failure().cause, HasSubstr("w1 on b was lost: its host b is lost (silent for 30 s)"));
}

TEST_F(LifecycleTest, HostsLostTogetherAreOneEventOfTheBudget) {
  use(bears({{"host", 1}}));
  hosts();
  step(lifecycle::HostCameUp{host("c", 2, 4)});
  train(4);
  step(lifecycle::HostLost{"a", "silent for 30 s"});
  const Effects lost = step(lifecycle::HostLost{"b", "silent for 30 s"});
  EXPECT_TRUE(all<lifecycle::StopWorker>(lost).empty());
  EXPECT_EQ(life.failures().size(), 4U);
  // Once training has gone on, the next failure is another event.
  for (std::uint32_t i = 0; i < 4; ++i) comes_up(w(i, 2));
  settle({w(0, 2), w(1, 2), w(2, 2), w(3, 2)});
  step(lifecycle::HostLost{"c", "silent for 30 s"});
  EXPECT_EQ(life.state(), JobState::kFailed);
  EXPECT_EQ(life.outcome()->code, 3);
}

TEST_F(LifecycleTest, WithoutFreeSlotsAWorkerWaitsForAHost) {
  use(bears({{"host", 1}}));
  hosts(1);
  train();
  EXPECT_TRUE(all<lifecycle::StartWorker>(step(lifecycle::HostLost{"b", "silent"})).empty());
  EXPECT_EQ(state_of(w(1).worker), "waiting");
  EXPECT_TRUE(all<lifecycle::StartWorker>(step(lifecycle::TimePassed{})).empty());
  const auto started = all<lifecycle::StartWorker>(step(lifecycle::HostCameUp{host("b", 1, 1)}));
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].member, w(1, 2));
}

TEST_F(LifecycleTest, AHostThatIsLostBeforeAnythingWasPlacedCannotBeReached) {
  step(lifecycle::HostLost{"a", "no answer"});
  EXPECT_EQ(life.outcome()->code, 3);
  EXPECT_THAT(life.outcome()->first_cause, HasSubstr("cannot be reached"));
}

TEST_F(LifecycleTest, AProcessThatItsAgentDoesNotKnowIsAHostThatRestarted) {
  use(bears({{"host", 1}}));
  train();
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::WorkerVanished{w(1)})).size(), 1U);
  EXPECT_EQ(class_of(failure()), "host");
}

TEST_F(LifecycleTest, AHostThatRefusesAReplacementIsTriedAgainLater) {
  use(bears({{"signal", 1}}));
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_TRUE(
      all<lifecycle::EndJob>(step(lifecycle::WorkerStartRefused{w(1, 2), "no room"})).empty());
  EXPECT_EQ(state_of(w(1).worker), "waiting");
  clock.advance(seconds(2));
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::TimePassed{})).at(0).member, w(1, 3));
}

TEST_F(LifecycleTest, AReplacementThatIsRefusedBeforeTheFirstStepWaits) {
  use(bears({{"host", 1}}));
  start();
  step(lifecycle::HostLost{"b", "silent"});
  step(lifecycle::WorkerStartRefused{w(1, 2), "full: what was there has not ended yet"});
  EXPECT_FALSE(life.outcome());
  clock.advance(seconds(2));
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::TimePassed{})).at(0).member, w(1, 3));
}

TEST_F(LifecycleTest, AStartThatIsRefusedAtTheBeginningEndsTheJob) {
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}}});
  EXPECT_EQ(all<lifecycle::EndJob>(step(lifecycle::WorkerStartRefused{w(0), "no room"}))
                .at(0)
                .outcome.code,
            3);
}

}  // namespace
}  // namespace antdt::ctl
