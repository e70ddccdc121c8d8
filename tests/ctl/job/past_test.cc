// Tests that a turn's writes do not grow with the time that a job runs, and lose nothing.
#include "ctl/job/past.h"

#include <gmock/gmock.h>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

TEST(Past, ActionsKeepTheirNumbersWhenTheOldestAreForgotten) {
  Past past;
  for (std::size_t i = 1; i <= Past::kMostActions + 5; ++i) {
    EXPECT_EQ(past.add(ActionReport{0, 1.0 * static_cast<double>(i), "adjust", "", "", "applied"}),
              i);
  }
  EXPECT_EQ(past.actions().size(), Past::kMostActions);
  EXPECT_EQ(past.action(5), nullptr);
  ASSERT_NE(past.action(6), nullptr);
  EXPECT_EQ(past.action(6)->time_s, 6.0);
  EXPECT_EQ(past.action(Past::kMostActions + 6), nullptr);
}

TEST(Past, RecordsAndSectionTellTheSame) {
  Past past;
  past.add(ActionReport{0, 3, "kill", "w1", "slow", "applied"});
  past.add(FailureRecord{4, {'w', 1}, Attempt{2}, "h", 0, std::string(5000, 'x'), 1, 2.5});
  past.add(ImageEpoch{0, 0.5, 10, 100, false, 0, {}, {}, {}});
  Past of_records;
  for (const auto& [kind, bytes] : past.take_records()) {
    ASSERT_TRUE(of_records.replay({std::string(kind), bytes}).value());
  }
  EXPECT_TRUE(past.take_records().empty());
  EXPECT_EQ(of_records.section().bytes, past.section().bytes);
  Past of_section;
  ASSERT_TRUE(of_section.replay(past.section()).value());
  EXPECT_EQ(of_section.section().bytes, past.section().bytes);
  EXPECT_EQ(of_section.failures().at(0).cause.size(), FailureRecord::kMostOfACause);
  EXPECT_EQ(of_section.add(ActionReport{0, 5, "kill", "w2", "slow", "applied"}), 2U);
}

TEST(Past, WhatIsNotKeptIsStillCounted) {
  Past past;
  for (std::size_t i = 0; i < Past::kMostFailures + 5; ++i) {
    past.add(FailureRecord{4, {'w', 1}, Attempt{2}, "h", 0, "it was killed", 1, 2.5});
  }
  for (std::size_t i = 0; i < Past::kMostActions + 3; ++i) {
    past.add(ActionReport{0, 3, "kill", "w1", "slow", "applied"});
  }
  Past of_records;
  for (const auto& [kind, bytes] : past.take_records()) {
    ASSERT_TRUE(of_records.replay({std::string(kind), bytes}).value());
  }
  Past of_section;
  ASSERT_TRUE(of_section.replay(of_records.section()).value());
  of_section.add(FailureRecord{5, {'w', 1}, Attempt{3}, "h", 0, "it was killed", 2, 2.5});
  EXPECT_EQ(past.failures_before(), 5U);
  EXPECT_EQ(of_records.failures_before(), 5U);
  EXPECT_EQ(of_section.failures_before(), 6U);
  EXPECT_EQ(of_section.actions_before(), 3U);
}

TEST(Past, AnEpochThatIsTrainedOnceMoreReplacesThoseFromItOn) {
  Past past;
  for (int i = 0; i < 4; ++i) past.add(ImageEpoch{0, 1.0 * i, 0, 0, false, 0, {}, {}, {}});
  past.keep_epochs(2);
  past.add(ImageEpoch{0, 9, 0, 0, false, 0, {}, {}, {}});
  Past again;
  for (const auto& [kind, bytes] : past.take_records()) {
    ASSERT_TRUE(again.replay({std::string(kind), bytes}).value());
  }
  ASSERT_EQ(again.epochs().size(), 3U);
  EXPECT_EQ(again.epochs()[2].train_loss, 9);
}

class LongJobTest : public JobFixture {
 protected:
  // The size of all writes of the turn.
  std::size_t bytes_of(const job::Input& input) {
    const std::size_t before = journal.records.size();
    feed(input);
    std::size_t bytes = 0;
    for (std::size_t i = before; i < journal.records.size(); ++i) {
      bytes += journal.records[i].bytes.size();
    }
    return bytes;
  }
  static JobMachineConfig bears_much() {
    JobMachineConfig c = config();
    c.spec.budgets = {{"signal", 1000}, {"host", 1000}};
    return c;
  }
  static lifecycle::WorkerExited killed(Member member) {
    wire::ProcessExited exited;
    exited.code = -1;
    exited.signal = 9;
    return {member, exited};
  }
};

TEST_F(LongJobTest, ATurnWritesNoMoreAfterAThousandActions) {
  open();
  const job::OperatorAsked said{"note", "the same words each time"};
  bytes_of(said);
  const std::size_t before = bytes_of(said);
  for (int i = 0; i < 1000; ++i) bytes_of(said);
  EXPECT_LE(bytes_of(said), before + 4) << "its number and its time take a byte or two more";
  open();
  EXPECT_EQ(machine->report().actions.size(), 1003U);
  EXPECT_EQ(machine->report().actions.back().number, 1003U);
  EXPECT_EQ(machine->check_approve(1003).error().message,
            "action 1003 (note) was asked, not advised: antdt explain says which are advised");
}

TEST_F(LongJobTest, ATurnWritesNoMoreAfterHundredFailuresAndAllAreReported) {
  open(bears_much());
  place(1);
  std::size_t settled_bytes = 0;
  for (std::uint32_t attempt = 1; attempt <= 100; ++attempt) {
    const std::size_t bytes = bytes_of(killed(w(0, attempt)));
    if (attempt == 70) settled_bytes = bytes;
    if (attempt > 70) {
      EXPECT_LE(bytes, settled_bytes + 60) << attempt;
    }
    const auto planned = [&] {
      return machine->lifecycle().find({'w', 0})->state == WorkerProcess::kPlanned;
    };
    for (int i = 0; i < 100 && !planned(); ++i) {
      clock.advance(std::chrono::seconds(10));
      feed(job::TimePassed{});
    }
    ASSERT_TRUE(planned()) << attempt;
    feed(lifecycle::WorkerStarted{w(0, attempt + 1), 100 + attempt});
    says(w(0, attempt + 1), join());
  }
  EXPECT_EQ(machine->report().failures.size(), 100U);
  EXPECT_LT(machine->lifecycle().failures().size(), 100U);
  open(bears_much());
  EXPECT_EQ(machine->report().failures.size(), 100U);
  EXPECT_EQ(machine->report().failures.front().attempt, Attempt{1});
  shard_server::JournalContent snapshot{machine->snapshot(), {}};
  journal = snapshot;
  open(bears_much());
  EXPECT_EQ(machine->report().failures.size(), 100U);
}

}  // namespace
}  // namespace antdt::ctl
