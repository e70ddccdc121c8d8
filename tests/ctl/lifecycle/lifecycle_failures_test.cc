// Tests of failures, their classes, and where the process is started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/lifecycle/lifecycle.h"
#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

using testing::HasSubstr;

// ---------------------------------------------------------------- the first cause

TEST_F(LifecycleTest, TheFirstCauseIsTheCulpritEvenIfAVictimIsHeardFirst) {
  train();
  const auto stops =
      all<lifecycle::StopWorker>(step(lifecycle::WorkerExited{w(0), code(kExitCollectiveBroken)}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].member, w(1));
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGSEGV)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 1);
  EXPECT_EQ(end[0].outcome.exit_class, ExitClass::kSignal);
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("w1 on b was killed by signal 11"));
}

TEST_F(LifecycleTest, AVictimDoesNotReplaceTheCause) {
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGSEGV)});
  const auto end =
      all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), code(kExitCollectiveBroken)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.exit_class, ExitClass::kSignal);
}

TEST_F(LifecycleTest, AWorkerKilledByOurOwnStopIsNotTheCause) {
  train();
  step(lifecycle::WorkerExited{w(1), code(3)});
  clock.advance(seconds(20));
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), killed(SIGKILL)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("w1 on b exited with code 3"));
  EXPECT_EQ(life.failures().size(), 1U);
}

TEST_F(LifecycleTest, TheReportShowsTheLastLinesOfTheCause) {
  train();
  step(lifecycle::WorkerExited{w(1), {3, 0, "", "ValueError: no such column", ""}});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), killed(SIGTERM)}));
  const std::string& cause = end.at(0).outcome.first_cause;
  EXPECT_THAT(cause,
              HasSubstr("\nThe last lines of its error output:\nValueError: no such column"));
  EXPECT_EQ(cause.substr(0, cause.find('\n')), "w1 on b exited with code 3")
      << "the first line is a sentence of its own";
}

// ------------------------------------------------- what is never started again

TEST_F(LifecycleTest, AProgramThatEndsWellAndNeverJoinedIsToldWhatToChange) {
  use(bears({{"program", 9}}));
  hosts();
  step(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}, {w(1).worker, "b", 1}}});
  for (const Member member : {w(0), w(1)}) step(lifecycle::WorkerStarted{member, 100});
  step(lifecycle::WorkerExited{w(0), code(0)});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U) << "to start it again would not help";
  EXPECT_EQ(end[0].outcome.code, 2);
  EXPECT_EQ(end[0].outcome.exit_class, ExitClass::kConfiguration);
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("without having joined the job"));
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("set roles.worker.protocol to \"torchrun\""));
}

TEST_F(LifecycleTest, AProgramThatJoinedAndEndsWellTooEarlyIsTriedAgain) {
  use(bears({{"program", 9}}));
  start();
  settle({w(0), w(1)});
  const Effects exited = step(lifecycle::WorkerExited{w(0), code(0)});
  EXPECT_EQ(all<lifecycle::StartWorker>(exited).size(), 1U);
  EXPECT_THAT(failure().cause, HasSubstr("w0 on a ended before the job was over"));
}

TEST_F(LifecycleTest, Code2IsAMistakeInTheConfigurationOnlyForProgramsOfTheProtocol) {
  for (const Protocol protocol : {Protocol::kAntdt, Protocol::kTorchrun, Protocol::kExec}) {
    JobSpec s = bears({{"program", 9}});
    s.protocol = protocol;
    use(s);
    start();
    step(lifecycle::WorkerExited{w(0), code(2)});
    const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGTERM)}));
    ASSERT_EQ(end.size(), 1U);
    EXPECT_EQ(end[0].outcome.code, protocol == Protocol::kAntdt ? 2 : 1);
  }
}

TEST_F(LifecycleTest, AProgramThatCannotBeExecutedIsAConfigurationError) {
  use(bears({{"configuration", 9}, {"program", 9}}));
  start();
  step(lifecycle::WorkerExited{
      w(0), {-1, 0, "cannot execute /no/such: No such file or directory", "", ""}});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 2);
  EXPECT_FALSE(end[0].outcome.resumable);
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("/no/such"));
}

TEST_F(LifecycleTest, AnErrorBeforeTheFirstStepIsReportedAtOnceAndNotRetried) {
  use(bears({{"program", 9}}));
  start();
  settle({w(0), w(1)});
  const Effects exited = step(lifecycle::WorkerExited{w(0), code(1)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(exited).empty());
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.code, 1);
  EXPECT_EQ(end[0].outcome.exit_class, ExitClass::kProgram);
  EXPECT_FALSE(end[0].outcome.resumable);
  EXPECT_THAT(end[0].outcome.first_cause,
              HasSubstr("\nIt is not started again: what fails before the job has made a step"));
}

TEST_F(LifecycleTest, TheSameErrorAfterAStepIsRetried) {
  use(bears({{"program", 9}}));
  train();
  const auto started = all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(0), code(1)}));
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].member, w(0, 2));
}

TEST_F(LifecycleTest, ASignalBeforeTheFirstStepIsRetried) {
  use(bears({{"signal", 9}}));
  start();
  EXPECT_EQ(
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(0), killed(SIGKILL)})).size(), 1U);
}

TEST_F(LifecycleTest, AWorkerThatEndsWellTooEarlyIsAFailure) {
  train();
  EXPECT_EQ(all<lifecycle::StopWorker>(step(lifecycle::WorkerExited{w(0), code(0)})).size(), 1U);
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(1), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].outcome.state, JobEnd::kFailed);
  EXPECT_THAT(end[0].outcome.first_cause, HasSubstr("w0 on a ended before"));
}

TEST_F(LifecycleTest, ExitCode93IsHonouredWhateverTheBudgets) {
  use(bears({{"program", 9}, {"never-again", 9}}));
  train();
  const Effects exited = step(lifecycle::WorkerExited{w(1), code(kExitNeverAgain)});
  EXPECT_TRUE(all<lifecycle::StartWorker>(exited).empty());
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), killed(SIGTERM)}));
  EXPECT_EQ(end.at(0).outcome.exit_class, ExitClass::kNeverAgain);
  EXPECT_FALSE(end[0].outcome.resumable);
}

TEST_F(LifecycleTest, ExitCode75StopsTheJobInGoodOrder) {
  train();
  const auto stops =
      all<lifecycle::StopWorker>(step(lifecycle::WorkerExited{w(1), code(kExitResumable)}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_GT(stops[0].grace, Duration::zero());
  const auto end =
      all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), code(kExitResumable)}));
  EXPECT_EQ(end.at(0).outcome.state, JobEnd::kStopped);
  EXPECT_EQ(end[0].outcome.code, 75);
  EXPECT_TRUE(life.failures().empty());
}

// ---------------------------------------------------------------------- restarts

TEST_F(LifecycleTest, AWorkerThatIsKilledIsStartedAgainAndTheOthersAreNotTouched) {
  use(bears({{"signal", 1}}));
  train(3);
  const Effects exited = step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_TRUE(all<lifecycle::StopWorker>(exited).empty());
  EXPECT_EQ(all<lifecycle::ReleaseWorker>(exited).at(0).member, w(1));
  EXPECT_FALSE(all<lifecycle::ReleaseWorker>(exited)[0].suspect)
      << "a SIGKILL says nothing of the records";
  const auto started = all<lifecycle::StartWorker>(exited);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].member, w(1, 2));
  EXPECT_EQ(started[0].host, "b");
  EXPECT_FALSE(life.is_current(w(1)));
  EXPECT_TRUE(life.is_current(w(1, 2)));
  EXPECT_FALSE(all<lifecycle::ExpectMembers>(exited).empty());
  EXPECT_EQ(running(), 3);
}

TEST_F(LifecycleTest, AClassHasABudgetAndExceedingItEndsTheJob) {
  use(bears({{"signal", 1}}));
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  step(lifecycle::WorkerExited{w(1, 2), killed(SIGKILL)});
  const auto end = all<lifecycle::EndJob>(step(lifecycle::WorkerExited{w(0), killed(SIGTERM)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_THAT(end[0].outcome.first_cause,
              HasSubstr("This exceeds failure.budgets.signal = 1; raise it"));
}

TEST_F(LifecycleTest, ABudgetRefillsWithTrainingAndNotWithWaiting) {
  JobSpec s = bears({{"signal", 1}});
  s.budget_refill = minutes(1);
  for (const bool trains : {true, false}) {
    use(s);
    train();
    step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
    for (int i = 0; i < 70; ++i) {
      clock.advance(seconds(1));
      if (trains) step(lifecycle::StepCompleted{Step{2}});
    }
    const Effects again = step(lifecycle::WorkerExited{w(1, 2), killed(SIGKILL)});
    EXPECT_EQ(all<lifecycle::StopWorker>(again).empty(), trains);
  }
}

// The last step that all made may be heard when one of them is known to be lost.
TEST_F(LifecycleTest, TheTimeInWhichAGroupRecoversRefillsNoBudget) {
  JobSpec s = bears({{"signal", 2}});
  s.budget_refill = minutes(1);
  s.hang_after = minutes(5);
  use(s);
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  step(lifecycle::GenerationEnded{});
  clock.advance(std::chrono::milliseconds(50));
  step(lifecycle::StepCompleted{Step{2}});
  ASSERT_EQ(life.budget_left(FailureClass::kSignal), 1U);
  clock.advance(seconds(100));
  settle({w(0), w(1, 2)});
  step(lifecycle::StepCompleted{Step{3}});
  EXPECT_EQ(life.budget_left(FailureClass::kSignal), 1U);
  clock.advance(seconds(100));
  step(lifecycle::StepCompleted{Step{4}});
  EXPECT_EQ(life.budget_left(FailureClass::kSignal), 2U) << "a step may take so long";
}

// The generation goes on, as with a newcomer that fails before it has joined.
TEST_F(LifecycleTest, ABudgetRefillsWithStepsAsLongAsTheJobAllows) {
  JobSpec s = bears({{"signal", 1}});
  s.budget_refill = minutes(5);
  for (const bool allows : {true, false}) {
    s.hang_after = allows ? minutes(2) : seconds(40);
    use(s);
    train();
    step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
    for (int i = 0; i < 8; ++i) {
      clock.advance(seconds(50));
      step(lifecycle::StepCompleted{Step{2}});
    }
    const Effects again = step(lifecycle::WorkerExited{w(1, 2), killed(SIGKILL)});
    EXPECT_EQ(all<lifecycle::StopWorker>(again).empty(), allows);
  }
}

TEST_F(LifecycleTest, ABudgetRefillsWhileProgramsWithoutStepsRun) {
  JobSpec s = bears({{"signal", 1}});
  s.protocol = Protocol::kExec;
  s.budget_refill = minutes(1);
  for (const int ran : {50, 90}) {
    use(s);
    start();
    for (int attempt = 1; attempt <= 2; ++attempt) {
      for (int i = 0; i < ran; ++i) {
        clock.advance(seconds(1));
        step(lifecycle::TimePassed{});
      }
      if (attempt == 2) break;
      step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
      step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
      step(lifecycle::GangPrepared{});
      for (const std::uint32_t i : {0U, 1U}) comes_up(w(i, 2));
    }
    EXPECT_EQ(life.budget_left(FailureClass::kSignal), ran > 70 ? 1U : 0U) << ran;
  }
}

TEST_F(LifecycleTest, ABudgetRefillsThoughSomeProgramsWithoutStepsHaveEndedWellOrLeft) {
  JobSpec s = bears({{"signal", 1}});
  s.protocol = Protocol::kExec;
  s.budget_refill = minutes(1);
  const auto run_for = [&](int ran) {
    for (int i = 0; i < ran; ++i) {
      clock.advance(seconds(1));
      step(lifecycle::TimePassed{});
    }
  };
  for (const bool is_evicted : {false, true}) {
    use(s);
    step(lifecycle::HostCameUp{host("a", 0, 2)});
    step(lifecycle::HostCameUp{host("b", 1, 1)});  // nobody else has room there
    start(3);
    run_for(20);
    step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
    for (const std::uint32_t i : {0U, 2U}) {
      step(lifecycle::WorkerExited{w(i), killed(SIGTERM)});
    }
    for (const std::uint32_t i : {0U, 1U, 2U}) comes_up(w(i, 2));
    ASSERT_EQ(life.budget_left(FailureClass::kSignal), 0U);
    if (is_evicted) step(lifecycle::EvictionRequested{"w2", "for the test", seconds(9)});
    step(lifecycle::WorkerExited{w(2, 2), is_evicted ? killed(SIGTERM) : code(0)});
    ASSERT_EQ(state_of(w(2).worker), is_evicted ? "removed" : "exited");
    run_for(90);
    EXPECT_EQ(life.budget_left(FailureClass::kSignal), 1U) << is_evicted;
  }
}

TEST_F(LifecycleTest, NoBudgetRefillsWhileAProgramWithoutStepsWaitsForRoom) {
  JobSpec s = bears({{"host", 1}});
  s.protocol = Protocol::kExec;
  s.budget_refill = minutes(1);
  use(s);
  step(lifecycle::HostCameUp{host("a", 0, 1)});
  step(lifecycle::HostCameUp{host("b", 1, 1)});
  start(2);
  step(lifecycle::HostLost{"b", "for the test"});
  step(lifecycle::WorkerExited{w(0), killed(SIGTERM)});
  ASSERT_EQ(running(), 0);
  for (int i = 0; i < 90; ++i) {
    clock.advance(seconds(1));
    step(lifecycle::TimePassed{});
  }
  EXPECT_EQ(life.budget_left(FailureClass::kHost), 0U);
}

// A loose client makes no steps. Its program works if records were committed.
TEST_F(LifecycleTest, AClientThatFailsAfterRecordsWereCommittedIsStartedAgain) {
  for (const bool committed : {true, false}) {
    use(bears({{"program", 1}}));
    start();
    if (committed) step(lifecycle::RecordsCommitted{});
    const Effects exited = step(lifecycle::WorkerExited{w(1), code(1)});
    EXPECT_EQ(all<lifecycle::StartWorker>(exited).size(), committed ? 1U : 0U);
    EXPECT_EQ(all<lifecycle::StopWorker>(exited).empty(), committed);
  }
}

TEST_F(LifecycleTest, FailuresInARowSoonAfterTheStartAreRetriedMoreAndMoreSlowly) {
  use(bears({{"signal", 99}}));
  train();
  EXPECT_EQ(
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(1), killed(SIGKILL)})).size(), 1U);
  double waited = 0;
  for (std::uint32_t attempt = 2; attempt < 14; ++attempt) {
    step(lifecycle::WorkerExited{w(1, attempt), killed(SIGKILL)});
    double seconds_waited = 0;
    while (state_of(w(1).worker) == "waiting" && seconds_waited < 100) {
      clock.advance(std::chrono::milliseconds(100));
      seconds_waited += 0.1;
      step(lifecycle::TimePassed{});
    }
    EXPECT_GE(seconds_waited + 0.2, waited);
    waited = seconds_waited;
  }
  EXPECT_NEAR(waited, 30, 1) << "not longer than that";
}

TEST_F(LifecycleTest, AWorkerThatWasAMemberIsStartedAgainAtOnce) {
  use(bears({{"signal", 99}}));
  train();
  for (std::uint32_t attempt = 1; attempt < 8; ++attempt) {
    const Effects exited = step(lifecycle::WorkerExited{w(1, attempt), killed(SIGKILL)});
    ASSERT_EQ(all<lifecycle::StartWorker>(exited).size(), 1U) << attempt;
    comes_up(w(1, attempt + 1));
    settle({w(0), w(1, attempt + 1)});
  }
}

TEST_F(LifecycleTest, AFailureSaysWhenTrainingWentOn) {
  use(bears({{"signal", 1}}));
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_FALSE(failure().recovered_in_s);
  clock.advance(seconds(2));
  settle({w(0)});
  EXPECT_EQ(failure().recovered_in_s, 2.0);
  clock.advance(seconds(2));
  settle({w(0), w(1, 2)});
  EXPECT_EQ(failure().recovered_in_s, 2.0);
}

TEST_F(LifecycleTest, AFailureSaysToWhichStepTrainingWentBack) {
  use(bears({{"signal", 2}}));
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  settle({w(0)});
  EXPECT_FALSE(failure().went_back_to) << "the others had the model";
  comes_up(w(1, 2));
  settle({w(0), w(1, 2)});
  step(lifecycle::WorkerExited{w(1, 2), killed(SIGKILL)});
  step(lifecycle::CheckpointRestored{1, 800, 40});
  comes_up(w(1, 3));
  settle({w(0), w(1, 3)});
  EXPECT_EQ(failure().went_back_to, 40U);
  EXPECT_FALSE(life.failures().front().went_back_to) << "that incident was over";
}

TEST_F(LifecycleTest, TheImageOfAPastIncidentHasTheBeginningOfItsCause) {
  use(bears({{"program", 1}}));
  train();
  step(lifecycle::WorkerExited{w(1), {1, 0, "", std::string(4000, 'x'), ""}});
  EXPECT_GT(failure().cause.size(), 4000U);
  settle({w(0)});
  EXPECT_EQ(failure().cause.size(), FailureRecord::kMostOfACause);
}

// A group of servers outlives the loss of a worker: no generation settles that could end the
// incident.
TEST_F(LifecycleTest, AroundServersTrainingGoesOnWithTheNextStep) {
  JobSpec s = bears({{"signal", 5}});
  s.servers = 1;
  s.sync = SyncStrategy::kPsAsp;
  use(s);
  hosts(4);
  const Member server{WorkerId{'s', 0}, Attempt{1}};
  lifecycle::WorkersPlaced placed;
  placed.workers = {{server.worker, "a", 0}, {w(0).worker, "a", 0}, {w(1).worker, "b", 1}};
  step(placed);
  for (const Member member : {server, w(0), w(1)}) comes_up(member);
  settle({w(0), w(1)});
  step(lifecycle::StepCompleted{Step{1}});

  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  clock.advance(seconds(2));
  EXPECT_FALSE(failure().recovered_in_s);
  const std::uint64_t first = failure().incident;
  step(lifecycle::StepCompleted{Step{2}});
  EXPECT_EQ(failure().recovered_in_s, 2.0);

  step(lifecycle::WorkerExited{w(0), killed(SIGKILL)});
  EXPECT_GT(failure().incident, first);
  step(lifecycle::GenerationEnded{});
  step(lifecycle::StepCompleted{Step{3}});
  EXPECT_FALSE(failure().recovered_in_s) << "a step that the group made before it was given up";
  settle({w(0), w(1)});
  EXPECT_FALSE(failure().recovered_in_s) << "the servers have not read their slices yet";
  clock.advance(seconds(3));
  step(lifecycle::StepCompleted{Step{4}});
  EXPECT_EQ(failure().recovered_in_s, 3.0);
}

TEST_F(LifecycleTest, TheImageOfARemovedWorkerHasNoLastLines) {
  use(bears({{"program", 1}}));
  train();
  step(lifecycle::WorkerCountRequested{1, "a test"});
  step(lifecycle::WorkerExited{w(1), {1, 0, "", std::string(4000, 'x'), ""}});
  ASSERT_EQ(life.find({'w', 1})->state, WorkerProcess::kRemoved);
  EXPECT_EQ(life.image().workers.at(1).last_lines, "");
}

TEST_F(LifecycleTest, ExitsOfAttemptsThatWereReplacedChangeNothing) {
  use(bears({{"signal", 5}}));
  train();
  step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_TRUE(step(lifecycle::WorkerExited{w(1), killed(SIGKILL)}).empty());
  EXPECT_EQ(life.failures().size(), 1U);
}

// ------------------------------------------------------------------------ hangs

TEST_F(LifecycleTest, AHungWorkerIsEndedAtOnceAndStartedAgain) {
  use(bears({{"hang", 1}}));
  train();
  const auto stops =
      all<lifecycle::StopWorker>(step(lifecycle::WorkerHung{w(1), "nothing was heard of it"}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].grace, Duration::zero());
  EXPECT_TRUE(step(lifecycle::WorkerHung{w(1), "again"}).empty());
  const Effects exited = step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_EQ(all<lifecycle::StartWorker>(exited).at(0).member, w(1, 2));
  EXPECT_EQ(class_of(failure()), "hang");
  EXPECT_THAT(failure().cause, HasSubstr("nothing was heard of it"));
}

// ------------------------------------------------------------------------- gangs

TEST_F(LifecycleTest, AGangIsStoppedAndStartedAgainTogether) {
  JobSpec s = bears({{"signal", 1}});
  s.restart = Restart::kGang;
  use(s);
  train(3);
  const Effects exited = step(lifecycle::WorkerExited{w(1), killed(SIGKILL)});
  EXPECT_EQ(all<lifecycle::StopWorker>(exited).size(), 2U);
  EXPECT_TRUE(all<lifecycle::StartWorker>(exited).empty()) << "the others still run";
  EXPECT_TRUE(
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(0), killed(SIGTERM)})).empty());
  const auto started =
      all<lifecycle::StartWorker>(step(lifecycle::WorkerExited{w(2), code(kExitCollectiveBroken)}));
  ASSERT_EQ(started.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(started[i].member, w(i, 2));
  EXPECT_FALSE(life.outcome()) << "victims take nothing from the budgets";
  clock.advance(seconds(2));
  EXPECT_FALSE(failure().recovered_in_s) << "they are started, and do not train yet";
  step(lifecycle::CheckpointRestored{0});
  settle({w(0, 2), w(1, 2), w(2, 2)});
  EXPECT_EQ(failure().recovered_in_s, 2.0);
  EXPECT_EQ(failure().went_back_to, 0U);
}

}  // namespace
}  // namespace antdt::ctl
