// Processes that are started again together.
#include <gmock/gmock.h>

#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

class GangTest : public LifecycleTest {
 protected:
  // The job daemon is started again on what it wrote.
  void follow(const JobSpec& s) {
    Lifecycle next(s);
    next.restore(life.image(), {});
    life = std::move(next);
  }
};

TEST_F(GangTest, AGangOfAPlainProgramWaitsForItsPort) {
  JobSpec s = bears({{"program", 1}});
  s.protocol = Protocol::kTorchrun;
  use(s);
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(lifecycle::GangPrepared{});
  step(lifecycle::WorkerStarted{w(0), 1});
  step(lifecycle::WorkerStarted{w(1), 2});
  clock.advance(seconds(20));
  step(lifecycle::WorkerExited{w(1), code(1)});
  const Effects left = step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(left).empty());
  EXPECT_EQ(all<lifecycle::PrepareGang>(left).at(0).workers.size(), 2U);
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::GangPrepared{})).size(), 2U);
}

// The job daemon was lost while a port was reserved, or before all had been ordered. Its successor
// does not know the port, and a process without it would train alone.
TEST_F(GangTest, AGangThatWasNotStartedAsAWholeBeginsAgainUnderTheNextJobDaemon) {
  for (const bool one_started : {false, true}) {
    JobSpec s = bears({{"program", 1}});
    s.protocol = Protocol::kTorchrun;
    use(s);
    hosts();
    step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
    if (one_started) {
      step(lifecycle::GangPrepared{});
      step(lifecycle::WorkerStarted{w(0), 1});
    }
    follow(s);
    const Effects effects = step(lifecycle::DaemonFollowed{});
    EXPECT_TRUE(all<lifecycle::StartWorker>(effects).empty());
    EXPECT_EQ(all<lifecycle::StopWorker>(effects).size(), 2U);
    hosts();
    step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});  // its agent knows no such process
    const Effects left = step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
    EXPECT_EQ(all<lifecycle::PrepareGang>(left).at(0).workers.size(), 2U);
    const auto started = all<lifecycle::StartWorker>(step(lifecycle::GangPrepared{}));
    ASSERT_EQ(started.size(), 2U);
    EXPECT_EQ(started[0].member, w(0, 2));
    EXPECT_FALSE(life.outcome()) << "it takes nothing from the budgets";
  }
}

TEST_F(GangTest, AGangThatRunsGoesOnUnderTheNextJobDaemon) {
  JobSpec s = bears({{"program", 1}});
  s.protocol = Protocol::kTorchrun;
  use(s);
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  step(lifecycle::GangPrepared{});
  step(lifecycle::WorkerStarted{w(0), 1});
  step(lifecycle::WorkerStarted{w(1), 2});
  follow(s);
  EXPECT_TRUE(step(lifecycle::DaemonFollowed{}).empty());
}

TEST_F(GangTest, AGangWaitsUntilThereIsRoomForAllItsProcesses) {
  JobSpec s = bears({{"host", 1}});
  s.restart = Restart::kGang;
  use(s);
  hosts(1);
  train();
  step(lifecycle::HostLost{"b", "silent"});
  EXPECT_TRUE(
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(0), killed(SIGTERM)})).empty());
  EXPECT_EQ(all<lifecycle::StartWorker>(step(lifecycle::HostCameUp{host("b", 1, 1)})).size(), 2U);
}

}  // namespace
}  // namespace antdt::ctl
