// Tests of hosts that are drained: their workers leave, and nothing is started there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/lifecycle/lifecycle.h"
#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

using testing::HasSubstr;

lifecycle::HostDrained drain(const std::string& host) { return {host, "by root@a: new memory"}; }

TEST_F(LifecycleTest, TheWorkersOnADrainedHostLeaveAndComeBackOnAnother) {
  hosts(4);
  train(2);  // w0 on a, w1 on b
  const Effects drained = step(drain("b"));
  const auto leaves = all<lifecycle::AskToLeave>(drained);
  ASSERT_EQ(leaves.size(), 1U);
  EXPECT_EQ(leaves[0].member, w(1));
  EXPECT_EQ(leaves[0].leave.reason, "b is drained by root@a: new memory");
  EXPECT_TRUE(step(drain("b")).empty()) << "a repeated message changes nothing";
  const Effects left = step(lifecycle::WorkerExited{w(1), code(kExitResumable)});
  EXPECT_EQ(all<lifecycle::StartWorker>(left).at(0).member, w(1, 2));
  EXPECT_EQ(all<lifecycle::StartWorker>(left)[0].host, "a");
  EXPECT_TRUE(life.failures().empty());
}

TEST_F(LifecycleTest, WithoutRoomElsewhereTheyWaitUntilTheHostIsNotDrainedAnyMore) {
  train(4);
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(drain("b"))).size(), 2U);
  for (const Member member : {w(1), w(3)}) {
    const Effects left = step(lifecycle::WorkerExited{member, code(kExitResumable)});
    EXPECT_TRUE(all<lifecycle::StartWorker>(left).empty());
    EXPECT_EQ(state_of(member.worker), "waiting");
  }
  EXPECT_TRUE(all<lifecycle::StartWorker>(step(lifecycle::TimePassed{})).empty());
  const auto started = all<lifecycle::StartWorker>(step(lifecycle::HostDrained{"b", ""}));
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0].host, "b");
  EXPECT_EQ(started[1].host, "b");
}

TEST_F(LifecycleTest, TheLastWorkersStayOnADrainedHostUntilAnotherTakesThem) {
  train(4);
  step(drain("b"));
  for (const Member member : {w(1), w(3)})
    step(lifecycle::WorkerExited{member, code(kExitResumable)});
  const Effects last = step(drain("a"));
  EXPECT_TRUE(all<lifecycle::AskToLeave>(last).empty());
  EXPECT_THAT(all<lifecycle::WriteNote>(last).back().text, HasSubstr("nobody would be left"));
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(lifecycle::HostCameUp{host("c", 2, 4)})).size(), 2U);
}

TEST_F(LifecycleTest, AHostThatIsFoundDrainedIsLeft) {
  hosts(4);
  train(2);
  HostState b = host("b", 1, 4);
  b.drained = "by root@b";
  EXPECT_EQ(all<lifecycle::AskToLeave>(step(lifecycle::HostCameUp{b})).at(0).member, w(1));
  ASSERT_NE(life.hosts().find("b"), nullptr);
  EXPECT_EQ(life.hosts().find("b")->drained, "by root@b");
}

TEST_F(LifecycleTest, AStartThatADrainedHostRefusesIsNoFailure) {
  hosts(4);
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(drain("b"));
  step(lifecycle::WorkerStartRefused{w(1), "host b is drained"});
  const auto started = all<lifecycle::StartWorker>(step(lifecycle::TimePassed{}));
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].host, "a");
  EXPECT_FALSE(life.outcome());
  EXPECT_EQ(life.hosts().find("b")->penalty, 0);
}

TEST_F(LifecycleTest, WorkersThatAreStartedTogetherLeaveADrainedHostTogetherOrNotAtAll) {
  JobSpec gang = spec();
  gang.restart = Restart::kGang;
  use(gang);
  train(2);
  EXPECT_TRUE(all<lifecycle::StopWorker>(step(drain("z"))).empty());
  const Effects all_stop = step(drain("b"));
  EXPECT_EQ(all<lifecycle::StopWorker>(all_stop).size(), 2U);
  step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
  const Effects again = step(lifecycle::WorkerExited{w(1), killed(SIGTERM)});
  const auto started = all<lifecycle::StartWorker>(again);
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0].host, "a");
  EXPECT_EQ(started[1].host, "a");

  use(gang);
  train(4);
  EXPECT_TRUE(all<lifecycle::StopWorker>(step(drain("b"))).empty()) << "no room for all";
}

}  // namespace
}  // namespace antdt::ctl
