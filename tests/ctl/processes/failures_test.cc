#include "ctl/processes/failures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace antdt::ctl {
namespace {

WorkerProcess exited(int code, int signal = 0) {
  WorkerProcess w;
  w.state = WorkerProcess::kExited;
  w.code = code;
  w.signal = signal;
  return w;
}

TEST(FailureClassTest, AnExitSaysWhatItMeans) {
  EXPECT_EQ(classify(exited(0), true), FailureClass::kNone);
  EXPECT_EQ(classify(exited(1), true), FailureClass::kProgram);
  EXPECT_EQ(classify(exited(1), false), FailureClass::kConfiguration);
  EXPECT_EQ(classify(exited(kExitResumable), false), FailureClass::kResumable);
  EXPECT_EQ(classify(exited(kExitNeverAgain), false), FailureClass::kNeverAgain);
  EXPECT_EQ(classify(exited(kExitCollectiveBroken), false), FailureClass::kCollective);
}

TEST(FailureClassTest, DataThatCannotBeReadSaysNothingOfRecordsAndConnections) {
  for (const bool made_progress : {false, true}) {
    const WorkerProcess w = exited(kExitDataLost);
    EXPECT_EQ(classify(w, made_progress), FailureClass::kDevice);
    EXPECT_FALSE(records_are_suspect(w, FailureClass::kDevice));
    EXPECT_THAT(describe_end(w, FailureClass::kDevice), testing::HasSubstr("not read its data"));
  }
  // Programs have the code for other errors, too; the sentence has both.
  WorkerProcess on_a_failed_gpu = exited(kExitDataLost);
  on_a_failed_gpu.device = "GPU 3 (GPU-a): rows wait";
  EXPECT_EQ(classify(on_a_failed_gpu, true), FailureClass::kDevice);
  EXPECT_EQ(describe_end(on_a_failed_gpu, FailureClass::kDevice),
            "failed with its device (GPU 3 (GPU-a): rows wait; exit code 74)");
}

TEST(FailureClassTest, CodesOfWorkersMeanNothingUnderAnotherProtocol) {
  for (const int code : {kExitDataLost, kExitCollectiveBroken}) {
    for (const Protocol other : {Protocol::kTorchrun, Protocol::kExec}) {
      const WorkerProcess w = exited(code);
      EXPECT_EQ(classify(w, true, other), FailureClass::kProgram) << code;
      EXPECT_EQ(classify(w, false, other), FailureClass::kConfiguration) << code;
      EXPECT_EQ(describe_end(w, FailureClass::kProgram), fmt::format("exited with code {}", code));
    }
  }
}

TEST(FailureClassTest, ASignalIsNeverABadConfiguration) {
  EXPECT_EQ(classify(exited(-1, SIGKILL), false), FailureClass::kSignal);
  EXPECT_EQ(classify(exited(-1, SIGSEGV), false), FailureClass::kSignal);
}

TEST(FailureClassTest, OutOfMemoryNeedsEvidence) {
  WorkerProcess w = exited(-1, SIGKILL);
  w.oom = "cgroup memory.events";
  EXPECT_EQ(classify(w, true), FailureClass::kOom);
  EXPECT_TRUE(records_are_suspect(w, FailureClass::kOom));
  EXPECT_FALSE(records_are_suspect(exited(-1, SIGKILL), FailureClass::kSignal));
  EXPECT_TRUE(records_are_suspect(exited(-1, SIGSEGV), FailureClass::kSignal));
}

TEST(FailureClassTest, AFailedDeviceExplainsWhatItsProcessDidAndNoMore) {
  for (WorkerProcess w :
       {exited(-1, SIGABRT), exited(1), exited(-1, SIGKILL), exited(kExitDataLost)}) {
    w.device = "GPU 3 (GPU-a): it has fallen off the bus";
    w.oom = "said: out of memory";
    EXPECT_EQ(classify(w, false), FailureClass::kDevice) << w.code;
    EXPECT_FALSE(records_are_suspect(w, FailureClass::kDevice));
    EXPECT_THAT(describe_end(w, FailureClass::kDevice),
                testing::HasSubstr("failed with its device (GPU 3 (GPU-a): it"));
    w.ask_to_stop(0);
    w.signal = SIGTERM;
    EXPECT_EQ(classify(w, false), FailureClass::kAsked);
  }
  WorkerProcess victim = exited(kExitCollectiveBroken);
  victim.device = "GPU 3 (GPU-a): rows wait";
  EXPECT_EQ(classify(victim, true), FailureClass::kCollective) << "it lost its peers";
  EXPECT_EQ(exit_class_of(FailureClass::kDevice), ExitClass::kDevice);
  EXPECT_EQ(name_of(ExitClass::kDevice), "device");
  EXPECT_EQ(name_of(ExitClass::kDone), "done");
}

TEST(FailureClassTest, AnExitThatFollowsOurStopIsRequested) {
  for (WorkerProcess w : {exited(0), exited(kExitResumable), exited(-1, SIGTERM), exited(143)}) {
    w.ask_to_stop(0);
    EXPECT_EQ(classify(w, true), FailureClass::kAsked) << w.code;
  }
  WorkerProcess segfault = exited(-1, SIGSEGV);
  segfault.ask_to_stop(0);
  EXPECT_EQ(classify(segfault, true), FailureClass::kSignal);
}

TEST(FailureClassTest, AnOrphanDidNotEndByItsOwnWish) {
  for (WorkerProcess w : {exited(kExitResumable), exited(-1, SIGTERM), exited(-1, SIGKILL)}) {
    w.orphaned = true;
    EXPECT_EQ(classify(w, true), FailureClass::kOrphaned) << w.code;
    EXPECT_FALSE(records_are_suspect(w, FailureClass::kOrphaned));
  }
  WorkerProcess asked = exited(kExitResumable);
  asked.orphaned = true;
  asked.ask_to_stop(0);
  EXPECT_EQ(classify(asked, true), FailureClass::kAsked);
}

TEST(FailureClassTest, ASigkillIsOursOnlyAfterTheGrace) {
  WorkerProcess w = exited(-1, SIGKILL);
  w.ask_to_stop(10);
  w.exited_at_s = 9;
  EXPECT_EQ(classify(w, true), FailureClass::kSignal);
  w.exited_at_s = 10;
  EXPECT_EQ(classify(w, true), FailureClass::kAsked);
}

TEST(FailureClassTest, AWorkerThatWasAskedToLeaveMayExitAsResumable) {
  WorkerProcess w = exited(kExitResumable);
  w.ask_to_leave(0);
  EXPECT_EQ(classify(w, true), FailureClass::kAsked);
  WorkerProcess crashed = exited(1);
  crashed.ask_to_leave(0);
  EXPECT_EQ(classify(crashed, true), FailureClass::kProgram);
}

TEST(BudgetsTest, AClassThatIsNotListedToleratesNoFailure) {
  Budgets budgets({{"oom", 1}}, std::chrono::minutes(10));
  EXPECT_FALSE(budgets.take(FailureClass::kProgram, 0));
  EXPECT_TRUE(budgets.take(FailureClass::kOom, 0));
  EXPECT_FALSE(budgets.take(FailureClass::kOom, 0));
}

TEST(BudgetsTest, OneComesBackAfterEachRefillOfTraining) {
  Budgets budgets({{"signal", 2}}, std::chrono::seconds(100));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 0));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 0));
  EXPECT_FALSE(budgets.take(FailureClass::kSignal, 99));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 100));
  EXPECT_FALSE(budgets.take(FailureClass::kSignal, 150));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 1000));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 1000));
  EXPECT_FALSE(budgets.take(FailureClass::kSignal, 1000)) << "never more than the limit";
}

TEST(BudgetsTest, AreTheSameAfterARestart) {
  Budgets budgets({{"signal", 1}}, std::chrono::seconds(100));
  EXPECT_TRUE(budgets.take(FailureClass::kSignal, 50));
  Budgets again({{"signal", 1}}, std::chrono::seconds(100));
  again.restore(budgets.image());
  EXPECT_FALSE(again.take(FailureClass::kSignal, 100));
  EXPECT_TRUE(again.take(FailureClass::kSignal, 150));
}

FailureRecord record(double time_s, FailureClass cls, const std::string& host,
                     std::uint64_t incident = 1) {
  FailureRecord f;
  f.time_s = time_s;
  f.cls = static_cast<std::uint8_t>(cls);
  f.host = host;
  f.incident = incident;
  return f;
}

TEST(FirstCauseTest, VictimsAreVictimsWheneverTheyWereHeardOf) {
  const std::vector<FailureRecord> failures{record(1, FailureClass::kCollective, "a"),
                                            record(2, FailureClass::kSignal, "b"),
                                            record(3, FailureClass::kHost, "c")};
  EXPECT_EQ(first_cause(failures, 1), 2U);
  const std::vector<FailureRecord> orphan{record(1, FailureClass::kCollective, "a"),
                                          record(2, FailureClass::kOrphaned, "b")};
  EXPECT_EQ(first_cause(orphan, 1), 1U);
  const std::vector<FailureRecord> device{record(1, FailureClass::kCollective, "a"),
                                          record(2, FailureClass::kProgram, "b"),
                                          record(3, FailureClass::kDevice, "c")};
  EXPECT_EQ(first_cause(device, 1), 2U);
}

TEST(FirstCauseTest, AmongEqualsTheFirstOfOneHost) {
  EXPECT_EQ(
      first_cause({record(2, FailureClass::kSignal, "a"), record(1.9, FailureClass::kSignal, "a")},
                  1),
      1U);
}

TEST(FirstCauseTest, OnTwoHostsOnlyTimesBeyondTheClockErrorAreCompared) {
  EXPECT_EQ(
      first_cause({record(2, FailureClass::kSignal, "a"), record(1.9, FailureClass::kSignal, "b")},
                  1),
      0U);
  EXPECT_EQ(first_cause(
                {record(2, FailureClass::kSignal, "a"), record(1, FailureClass::kSignal, "b")}, 1),
            1U);
}

TEST(ShortenCauseTest, CutsBetweenCharacters) {
  FailureRecord failure;
  failure.cause =
      "w1 failed: " + std::string(FailureRecord::kMostOfACause - 12, 'x') + "\u00e4 and more";
  shorten_cause(failure);
  EXPECT_EQ(failure.cause.size(), FailureRecord::kMostOfACause - 1);
  EXPECT_TRUE(failure.cause.ends_with('x'));
  const std::string short_one = failure.cause;
  shorten_cause(failure);
  EXPECT_EQ(failure.cause, short_one);
}

TEST(ExitClassTest, AJobThatAFailureEndsHasTheNameOfItsClass) {
  for (const std::string_view name : names_of(FailureClass{})) {
    const auto cls = by_name<FailureClass>(name);
    ASSERT_TRUE(cls) << name;
    EXPECT_EQ(name_of(exit_class_of(*cls)), name);
  }
  EXPECT_EQ(name_of(ExitClass::kDone), "done");
  EXPECT_EQ(name_of(ExitClass::kDelivery), "delivery");
  EXPECT_EQ(by_name<ExitClass>("data"), ExitClass::kData);
}

TEST(FirstCauseTest, OtherIncidentsDoNotCount) {
  const std::vector<FailureRecord> failures{record(1, FailureClass::kHost, "a", 1),
                                            record(5, FailureClass::kSignal, "b", 2)};
  EXPECT_EQ(first_cause(failures, 2), 1U);
  EXPECT_EQ(first_cause(failures, 3), failures.size());
}

}  // namespace
}  // namespace antdt::ctl
