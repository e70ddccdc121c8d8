// Tests of the entries that the job makes in its history: grants of the members of a collective,
// and the steps that these report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

namespace history = shard_server::history;
using ::testing::HasSubstr;

class JobHistoryTest : public JobFixture {
 protected:
  void saw(const job::Effects& outputs) override {
    for (const job::Effect& output : outputs) {
      if (const auto* r = std::get_if<job::RememberEntry>(&output)) {
        remembered += text(r->entry) + "\n";
      } else if (const auto* m = std::get_if<job::SendToWorker>(&output)) {
        if (const auto* g = std::get_if<wire::Grants>(&m->body)) grants = *g;
        if (std::holds_alternative<wire::Settle>(m->body)) remembered += "send settle\n";
      } else if (std::holds_alternative<job::StoreCheckpoint>(output)) {
        remembered += "store checkpoint\n";
      } else if (const auto* n = std::get_if<job::PublishNote>(&output)) {
        if (n->kind == "history") remembered += "refused\n";
      }
    }
  }
  static std::string text(const history::Entry& entry) {
    if (const auto* e = std::get_if<history::Settled>(&entry)) {
      return fmt::format("settled {} after {} of {}", e->generation, e->step, e->members.size());
    }
    if (const auto* e = std::get_if<history::Grant>(&entry)) {
      return fmt::format("grant {} at {}: {}-{}", e->worker, e->place, e->at.from, e->at.to);
    }
    if (const auto* e = std::get_if<history::Cut>(&entry)) {
      return fmt::format("cut {} at {}", e->worker, e->place);
    }
    if (const auto* e = std::get_if<history::Measured>(&entry)) {
      std::string measured = fmt::format("measured for {:.1f} s:", e->seconds);
      for (const shard_server::WorkerMoment& m : e->workers) {
        measured += fmt::format(" {} {} in {}, {} x {}", m.member.worker, m.samples, m.batches,
                                m.micro_batch, m.accumulation);
      }
      return measured;
    }
    const auto& e = std::get<history::Steps>(entry);
    return fmt::format("steps {}+{}", e.run.first, e.run.steps);
  }
  // Returns the entries since the last call.
  std::string taken() { return std::exchange(remembered, {}); }

  void settle(Generation base = {}, Step step = {}, const wire::StepHistory& told = {}) {
    for (const Member m : {w(0), w(1)}) says(m, join(base, step));
    for (const Member m : {w(0), w(1)}) says(m, wire::Address{"here"});
    wire::Ready ready;
    ready.collective = "shm (2 members of 1 host)";
    ready.step = step;
    ready.history = told;
    if (base != Generation{}) {
      ready.phase = 1;
      ready.places = {{w(0).worker, 8}, {w(1).worker, 8}};
    }
    says(w(0), ready);
    ready.history = {};
    says(w(1), ready);
  }
  void settled_group() {
    open();
    place(2);
    settle();
  }
  static wire::Progress progress(std::uint64_t first, std::uint64_t steps) {
    wire::Progress told;
    told.phase = 1;
    told.step = Step{first + steps - 1};
    told.history = {Generation{1}, {{Step{first}, steps, 1, {0, 0}, {4, 4}}}};
    return told;
  }

  std::string remembered;
  wire::Grants grants;  // the last that was sent
};

TEST_F(JobHistoryTest, AGenerationIsRememberedBeforeItsSettleIsSent) {
  settled_group();
  EXPECT_THAT(taken(), HasSubstr("settled 1 after 0 of 2\nsend settle\nsend settle\n"));
}

TEST_F(JobHistoryTest, TheNextJobDaemonKnowsTheCollectiveOfTheGenerationThatGoesOn) {
  settled_group();
  open();
  EXPECT_EQ(machine->report().collective, "shm (2 members of 1 host)");
}

TEST_F(JobHistoryTest, HowAWorkerSummedEmbeddingGradientsIsAddedUpOverItsAttempts) {
  settled_group();
  wire::Metrics metrics;
  metrics.sum.table_sums = {5, 1};
  says(w(0), metrics);
  metrics.sum.table_sums = {8, 1};
  says(w(0), metrics);
  wire::Bye bye;
  bye.table_sums = {9, 2};
  says(w(0), bye);
  const auto sums = [&] { return machine->report().workers.at(0).table_sums; };
  EXPECT_EQ(sums().as_rows, 9U);
  EXPECT_EQ(sums().as_whole, 2U);
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  feed(lifecycle::WorkerStarted{w(0, 2), 200});
  metrics.sum.table_sums = {3, 0};
  says(w(0, 2), metrics);
  EXPECT_EQ(sums().as_rows, 12U);
  EXPECT_EQ(sums().as_whole, 2U);
}

TEST_F(JobHistoryTest, AGrantIsRememberedWithItsPlaceAndOnce) {
  settled_group();
  taken();
  says(w(0), wire::Fetch{1, 0, 12, {}}, 1);
  EXPECT_EQ(taken(), "grant w0 at 0: 0-12\n");
  says(w(1), wire::Fetch{1, 0, 12, {}}, 1);
  EXPECT_EQ(taken(), "grant w1 at 0: 12-24\n");
  says(w(0), wire::Fetch{1, 8, 12, {}}, 2);
  EXPECT_EQ(taken(), "grant w0 at 12: 24-36\n");
  says(w(0), wire::Fetch{1, 8, 12, {}}, 2);  // the answer was lost
  EXPECT_EQ(taken(), "");
}

TEST_F(JobHistoryTest, RecalledRecordsAreCutFromTheHistory) {
  settled_group();
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  std::uint64_t seq = 1;
  while (machine->ledger().ungranted() > 0) {
    says(w(0), wire::Fetch{1, 0, 100, {}}, ++seq);
    says(w(1), wire::Fetch{1, 0, 100, {}}, seq);
    ASSERT_LT(seq, 100U);
  }
  // w1 has finished its part, and w0 has not begun.
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t end = machine->ledger().holders().at(w(1).worker).end;
    says(w(1), wire::Fetch{1, end, 100, {}}, ++seq);
  }
  const shard_server::Holder& rich = machine->ledger().holders().at(w(0).worker);
  ASSERT_TRUE(rich.recall_pending);
  taken();
  says(w(0), wire::Recalled{1, rich.recall_keep_to}, rich.recalls);
  EXPECT_EQ(taken(), fmt::format("cut w0 at {}\n", rich.end));
}

TEST_F(JobHistoryTest, StepsAreRememberedAndAcknowledgedOnceTheyAreSafe) {
  settled_group();
  taken();
  says(w(0), progress(1, 5));
  says(w(0), progress(1, 5));
  EXPECT_EQ(taken(), "steps 1+5\n");
  says(w(0), wire::Fetch{1, 0, 8, {}}, 1);
  EXPECT_EQ(grants.recorded, Step{0});
  feed(job::HistoryKept{machine->history_mark()});
  says(w(1), wire::Fetch{1, 0, 8, {}}, 1);
  EXPECT_EQ(grants.recorded, Step{5});
}

TEST_F(JobHistoryTest, StepsThatADeadRankZeroDidNotReportComeBeforeTheNextGenerationSettles) {
  settled_group();
  says(w(0), wire::Fetch{1, 0, 8, {}}, 1);
  says(w(1), wire::Fetch{1, 0, 8, {}}, 1);
  taken();
  settle(Generation{1}, Step{2}, {Generation{1}, {{Step{1}, 2, 1, {0, 0}, {4, 4}}}});
  EXPECT_THAT(taken(), HasSubstr("steps 1+2\nsettled 2 after 2 of 2\nsend settle\n"));
}

TEST_F(JobHistoryTest, TheStepsOfACheckpointAreRememberedBeforeItIsStored) {
  settled_group();
  taken();
  wire::CheckpointWritten written;
  written.step = Step{3};
  written.phase = 1;
  written.places = {{w(0).worker, 0}, {w(1).worker, 0}};
  written.history = progress(1, 3).history;
  says(w(0), written);
  EXPECT_EQ(taken(), "steps 1+3\nstore checkpoint\n");
}

TEST_F(JobHistoryTest, AnImpossibleReportIsLoggedOnceAndDoesNoHarm) {
  settled_group();
  taken();
  wire::Progress wrong = progress(1, 5);
  wrong.history.runs[0].records.push_back(1);
  says(w(0), wrong);
  says(w(0), wrong);
  EXPECT_EQ(taken(), "refused\n");
  says(w(0), progress(1, 5));
  EXPECT_EQ(taken(), "steps 1+5\n");
}

TEST_F(JobHistoryTest, MeasurementsOfWorkersAreStoredOnceASecond) {
  settled_group();
  feed(job::TimePassed{});
  taken();
  const auto reports = [&](Member m, std::uint32_t batches, std::uint64_t samples) {
    wire::Metrics metrics;
    metrics.sum.batches = batches;
    metrics.sum.samples = samples;
    metrics.sum.compute_us = 1000;
    says(m, metrics);
  };
  reports(w(1), 2, 8);
  reports(w(0), 1, 4);
  reports(w(1), 1, 4);
  feed(job::TimePassed{});
  EXPECT_EQ(taken(), "") << "the second is not over";
  clock.advance(std::chrono::milliseconds(1095));
  feed(job::TimePassed{});
  EXPECT_EQ(taken(), "measured for 1.1 s: w0 4 in 1, 4 x 1 w1 12 in 3, 4 x 1\n");
  clock.advance(std::chrono::seconds(5));
  feed(job::TimePassed{});
  EXPECT_EQ(taken(), "") << "nobody has measured anything";
}

TEST_F(JobHistoryTest, ALooseClientIsNotRemembered) {
  JobMachineConfig loose = config();
  loose.spec.external = true;
  open(loose);
  wire::Join join;
  join.collective = false;
  says(w(0), join);
  says(w(0), wire::Fetch{1, 0, 12, {}}, 1);
  EXPECT_FALSE(grants.pieces.empty());
  EXPECT_EQ(taken(), "");
}

TEST_F(JobHistoryTest, AfterARestartTheLedgersGrantsAreRememberedAgain) {
  settled_group();
  says(w(0), wire::Fetch{1, 0, 12, {}}, 1);
  says(w(1), wire::Fetch{1, 0, 12, {}}, 1);
  says(w(0), wire::Fetch{1, 8, 12, {}}, 2);
  feed(job::HistoryKept{machine->history_mark()});
  taken();
  open();
  EXPECT_EQ(taken(),
            "grant w0 at 0: 0-8\ngrant w0 at 8: 8-12\ngrant w0 at 12: 24-36\n"
            "grant w1 at 0: 12-24\n");
  says(w(0), progress(7, 3));  // earlier reports were acknowledged
  EXPECT_EQ(taken(), "steps 7+3\n");
  feed(job::HistoryKept{machine->history_mark()});
  says(w(1), wire::Fetch{1, 0, 8, {}}, 2);
  EXPECT_EQ(grants.recorded, Step{9});
}

}  // namespace
}  // namespace antdt::ctl
