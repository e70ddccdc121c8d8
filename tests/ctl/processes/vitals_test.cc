#include "ctl/processes/vitals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

class VitalsTest : public testing::Test {
 protected:
  VitalsTest() {
    clock.advance(seconds(100));
    for (const std::uint32_t i : {0U, 1U, 2U}) vitals.watch(w(i), clock.now());
  }
  void train() { vitals.expect_steps({w(0), w(1), w(2)}, clock.now()); }
  // For `length`, all workers in `who` send the same report each second.
  void report(Duration length, std::uint64_t step, const std::string& activity,
              const std::vector<Member>& who) {
    for (Duration t{}; t < length; t += seconds(1)) {
      clock.advance(seconds(1));
      for (const Member m : who) vitals.heard(m, Step{step}, activity, clock.now());
    }
  }
  ManualClock clock;
  Vitals vitals{seconds(30)};
};

TEST_F(VitalsTest, AProcessThatFallsSilentHangs) {
  report(seconds(31), 1, "compute", {w(0), w(2)});
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::get<HungMember>(found[0]).member, w(1));
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty()) << "said once";
}

TEST_F(VitalsTest, SilenceOfAHostSaysNothingOfItsWorkers) {
  report(seconds(29), 1, "compute", {w(0), w(2)});
  vitals.excuse({w(1)}, clock.now());
  report(seconds(10), 1, "compute", {w(0), w(2)});
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

TEST_F(VitalsTest, AForgottenWorkerIsNotMissed) {
  vitals.forget(w(1));
  report(seconds(40), 1, "compute", {w(0), w(2)});
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

TEST_F(VitalsTest, AMemberThatDoesNotWaitForTheOthersHoldsThemUp) {
  train();
  for (int i = 0; i < 31; ++i) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), Step{6}, "data", clock.now());
  }
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  const auto& hung = std::get<HungMember>(found[0]);
  EXPECT_EQ(hung.member, w(1));
  EXPECT_THAT(hung.why, HasSubstr("'data'"));
}

TEST_F(VitalsTest, IfAllWaitTheCollectiveItselfIsStuck) {
  train();
  report(seconds(31), 7, "compute", {w(0), w(1), w(2)});
  report(seconds(31), 7, "collective_wait", {w(0), w(1), w(2)});
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<StuckCollective>(found[0]));
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

TEST_F(VitalsTest, SlowIsNotHung) {
  train();
  for (std::uint64_t step = 1; step < 10; ++step) {
    report(seconds(29), step, "compute", {w(0), w(1), w(2)});
    EXPECT_THAT(vitals.check(clock.now()), IsEmpty()) << step;
  }
}

TEST_F(VitalsTest, AMemberWhoseActivityChangesDoesNotHang) {
  train();
  for (int i = 0; i < 31; ++i) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), Step{6}, i % 2 == 0 ? "data" : "compute", clock.now());
  }
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

// In an evaluation there are no steps, however long it takes, and who is done waits for the others.
TEST_F(VitalsTest, AMemberThatEvaluatesDoesNotHang) {
  train();
  wire::Report evaluates;
  evaluates.step = Step{7};
  evaluates.activity = "compute";
  for (int i = 0; i < 100; ++i) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    if (i % 20 == 0) evaluates.account.compute += 20;  // a batch is done
    vitals.heard(w(1), evaluates, clock.now());
    ASSERT_THAT(vitals.check(clock.now()), IsEmpty()) << i;
  }
  // Now the batch hangs.
  for (int i = 0; i < 31; ++i) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), evaluates, clock.now());
  }
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::get<HungMember>(found[0]).member, w(1));
}

TEST_F(VitalsTest, NobodyIsExpectedToMakeStepsWhileTheGroupMeets) {
  train();
  vitals.expect_steps({}, clock.now());
  report(seconds(100), 7, "reconfigure", {w(0), w(1), w(2)});
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

TEST_F(VitalsTest, AMessageThatSaysNothingOfTheTrainingThreadIsASignOfLifeOnly) {
  train();
  for (int i = 0; i < 31; ++i) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), {}, "", clock.now());
  }
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::get<HungMember>(found[0]).member, w(1));
}

// ------------------------------------------------------- patience goes by bytes

wire::Report doing(std::string_view io, std::uint64_t done, const std::string& activity) {
  wire::Report report;
  report.step = Step{7};
  report.activity = activity;
  report.io = io;
  report.io_path = "/run/1/checkpoints/s7";
  report.io_done_bytes = done;
  report.io_total_bytes = 12'400'000'000;
  return report;
}

// In a consolidation of many hosts some have received their part of a sum, and wait for the rest.
TEST_F(VitalsTest, WhoHasReceivedAndWaitsForTheRestDoesNotHang) {
  train();
  for (std::uint64_t second = 0; second < 100; ++second) {
    vitals.heard(w(0), doing(kReceivesState, second, "collective_wait"), clock.now());
    vitals.heard(w(1), doing(kReceivesState, 5, "collective_wait"), clock.now());
    vitals.heard(w(2), doing(kReceivesState, 5, "collective_wait"), clock.now());
    clock.advance(seconds(1));
    ASSERT_THAT(vitals.check(clock.now()), IsEmpty()) << second;
  }
  report(seconds(31), 7, "collective_wait", {w(0), w(1), w(2)});
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<StuckCollective>(found[0])) << "they are called together anew";
}

TEST_F(VitalsTest, AReaderOfASlowDiskIsWaitedForAsLongAsBytesCome) {
  train();
  for (std::uint64_t second = 1; second <= 100; ++second) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    const bool moves = second % 20 == 0;
    EXPECT_EQ(vitals.heard(w(1), doing(kReadsCheckpoint, second / 20, "reconfigure"), clock.now()),
              moves || second == 1 ? IoMoved::kHeldUpFor : IoMoved::kNothing);
    ASSERT_THAT(vitals.check(clock.now()), IsEmpty()) << second;
  }
}

TEST_F(VitalsTest, AMemberThatHangsOverACheckpointIsNamedAsTheCause) {
  train();
  for (int second = 0; second < 31; ++second) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), doing(kReadsCheckpoint, 3'100'000'000, "collective_wait"), clock.now());
  }
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U) << "and not that all of them wait in the collective";
  EXPECT_EQ(std::get<HungMember>(found[0]).member, w(1));
  EXPECT_EQ(std::get<HungMember>(found[0]).why,
            "reading the checkpoint /run/1/checkpoints/s7 stands still at 3.1 of 12.4 GB for 30 s: "
            "look at the disk there");
}

TEST_F(VitalsTest, ACheckpointBesideTheStepsDoesNotExcuseAHangInThem) {
  train();
  for (std::uint64_t second = 0; second < 31; ++second) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    EXPECT_EQ(vitals.heard(w(1), doing(kWritesCheckpoint, second, "data"), clock.now()),
              IoMoved::kWritten);
  }
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(std::get<HungMember>(found[0]).why, HasSubstr("'data'"));
}

TEST_F(VitalsTest, AWriteThatStandsStillDoesNotHarmWorkersThatMakeSteps) {
  train();
  for (std::uint64_t step = 1; step < 100; ++step) {
    report(seconds(1), step, "compute", {w(0), w(1), w(2)});
    vitals.heard(w(1), doing(kWritesCheckpoint, 5, "compute"), clock.now());
    ASSERT_THAT(vitals.check(clock.now()), IsEmpty()) << step;
  }
}

TEST_F(VitalsTest, ANewcomerThatOpensItsDataDoesNotExcuseAHangOfTheGroup) {
  train();
  for (std::uint64_t second = 0; second < 31; ++second) {
    report(seconds(1), 7, "collective_wait", {w(0), w(2)});
    vitals.heard(w(1), Step{7}, "data", clock.now());
    EXPECT_EQ(vitals.heard(w(3), doing(kIndexesData, second, "startup"), clock.now()),
              IoMoved::kOpened);
  }
  EXPECT_EQ(io_text(vitals.io().of(w(3))), "indexing the data: 0.0 of 12.4 GB, 0.0 MB/s");
  const auto found = vitals.check(clock.now());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::get<HungMember>(found[0]).member, w(1));
}

TEST_F(VitalsTest, WhatIsSaidOfAnIndexIsForgottenWhenItIsOpen) {
  vitals.heard(w(3), doing(kChecksIndex, 5, "startup"), clock.now());
  EXPECT_TRUE(vitals.io().indexes(w(3)));
  vitals.heard(w(3), wire::Report{}, clock.now());
  EXPECT_FALSE(vitals.io().indexes(w(3)));
  EXPECT_EQ(vitals.heard(w(3), doing(kReadsCheckpoint, 5, "startup"), clock.now()),
            IoMoved::kNothing)
      << "it has not joined";
}

TEST_F(VitalsTest, DataThatAProgramOpensByMeansOfItsOwnAreWaitedForLikewise) {
  EXPECT_EQ(vitals.heard(w(3), doing(kOpensData, 5, "startup"), clock.now()), IoMoved::kOpened);
  EXPECT_TRUE(vitals.io().indexes(w(3)));
  clock.advance(seconds(31));
  EXPECT_THAT(vitals.io().stands_still(w(3), clock.now()),
              HasSubstr("opening the data /run/1/checkpoints/s7 stands still at"));
}

TEST_F(VitalsTest, AHostThatDoesNotAnswerIsNotADiskThatStandsStill) {
  train();
  vitals.heard(w(1), doing(kReadsCheckpoint, 5, "reconfigure"), clock.now());
  report(seconds(29), 7, "collective_wait", {w(0), w(2)});
  vitals.excuse({w(1)}, clock.now());
  report(seconds(10), 7, "collective_wait", {w(0), w(2)});
  EXPECT_THAT(vitals.check(clock.now()), IsEmpty());
}

TEST_F(VitalsTest, SaysHowFarACheckpointIsAndHowFast) {
  for (std::uint64_t second = 0; second <= 12; ++second) {
    vitals.heard(w(0), doing(kWritesCheckpoint, second * 96'000'000, "compute"), clock.now());
    clock.advance(seconds(1));
  }
  EXPECT_EQ(io_text(vitals.io().of(w(0))), "writing the checkpoint: 1.2 of 12.4 GB, 96.0 MB/s");
  vitals.heard(w(0), wire::Report{}, clock.now());
  EXPECT_EQ(io_text(vitals.io().of(w(0))), "");
  wire::Report unknown = doing(kWaitsForIndex, 2'500'000, "startup");
  unknown.io_total_bytes = 0;
  vitals.heard(w(0), unknown, clock.now());
  EXPECT_EQ(io_text(vitals.io().of(w(0))), "waiting for another process to index the data: 2.5 MB");
}

}  // namespace
}  // namespace antdt::ctl
