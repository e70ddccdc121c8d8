// Processes that are started again together.
#include <gmock/gmock.h>

#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

class GangTest : public LifecycleTest {
 protected:
  // A gang of two on two hosts, whose port is being reserved.
  void place(Restart restart = Restart::kMember) {
    program_ = bears({{"program", 1}});
    program_.protocol = Protocol::kTorchrun;
    program_.restart = restart;
    use(program_);
    hosts();
    step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  }
  void start(std::uint32_t processes) {
    step(lifecycle::GangPrepared{});
    for (std::uint32_t i = 0; i < processes; ++i) step(lifecycle::WorkerStarted{w(i), 1 + i});
  }
  // The job daemon is started again on what it wrote.
  Effects follow() {
    Lifecycle next(program_);
    next.restore(life.image(), {});
    life = std::move(next);
    return step(lifecycle::DaemonFollowed{});
  }

 private:
  JobSpec program_;
};

TEST_F(GangTest, AGangOfAPlainProgramWaitsForItsPort) {
  place();
  start(2);
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
    place();
    if (one_started) start(1);
    const Effects effects = follow();
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
  place();
  start(2);
  EXPECT_TRUE(follow().empty());
}

TEST_F(GangTest, AGangThatIsNeverStartedAgainFailsAndSaysWhatToDo) {
  place(Restart::kNever);
  start(1);
  EXPECT_TRUE(all<lifecycle::StartWorker>(follow()).empty());
  ASSERT_TRUE(life.outcome());
  EXPECT_EQ(life.outcome()->state, JobEnd::kFailed);
  EXPECT_EQ(life.outcome()->code, 3);
  EXPECT_THAT(life.outcome()->first_cause,
              testing::HasSubstr("w1 was not started before the job daemon was lost"));
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
