// A checkpoint that is written while steps go on, and one that is read from a slow disk: what the
// job daemon stores for the first, and which process is waited for, or named, in the second case.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class JobCheckpointsTest : public JobFixture {
 protected:
  JobCheckpointsTest() {
    auto with = config();
    with.spec.checkpoint_every = seconds(10);
    with.hang_after = seconds(5);
    open(with);
  }
  job::Effects settle(const std::vector<Member>& members, Generation base = {},
                      std::uint64_t place = 0) {
    for (const Member m : members) says(m, join(base));
    for (const Member m : members) says(m, wire::Address{"here"});
    job::Effects last;
    for (const Member m : members) {
      wire::Ready ready;
      if (base != Generation{}) {
        ready.phase = 1;
        for (const Member b : members) ready.places.push_back({b.worker, place});
      }
      last = says(m, ready);
    }
    return last;
  }
  wire::CheckpointBegun begun(std::uint64_t number, std::uint64_t place) {
    wire::CheckpointBegun begun;
    begun.number = number;
    begun.phase = 1;
    begun.step = Step{place};
    begun.places = {{w(0).worker, place}};
    return begun;
  }
  static wire::CheckpointWritten written(const wire::CheckpointBegun& begun) {
    wire::CheckpointWritten written;
    written.number = begun.number;
    written.phase = begun.phase;
    written.step = begun.step;
    written.places = begun.places;
    return written;
  }
  // In the directory into which w0 writes it.
  [[nodiscard]] wire::CheckpointWritten written_by_w0(const wire::CheckpointBegun& begun) const {
    wire::CheckpointWritten written = JobCheckpointsTest::written(begun);
    written.directory = fmt::format("/run/checkpoints/.tmp-{}-g{}-w0.1", begun.step,
                                    machine->membership().generation());
    return written;
  }
  static wire::CheckpointWritten without_room(wire::CheckpointWritten written) {
    written.error = "No space left on device";
    return written;
  }
  void trains_to(std::uint64_t place, bool done = false) {
    wire::Progress progress;
    progress.phase = 1;
    progress.place = place;
    progress.step = Step{place + 1};
    progress.done = done;
    says(w(0), progress);
  }
  [[nodiscard]] std::uint64_t committed_in(const job::StoreCheckpoint& store) const {
    const auto then = shard_server::Ledger::restore(config().ledger, store.ledger_image);
    EXPECT_TRUE(then);
    return then->committed();
  }
  // All reports of a second, and the tick after it.
  job::Effects second(const std::vector<std::pair<Member, wire::Report>>& reports) {
    clock.advance(seconds(1));
    for (const auto& [member, report] : reports) says(member, wire::Metrics{report, 1000});
    return feed(job::TimePassed{});
  }
  // Whether a checkpoint is ordered while these members go on with steps.
  bool orders_within(int length, const std::vector<Member>& members) {
    for (int s = 0; s < length; ++s) {
      std::vector<std::pair<Member, wire::Report>> reports;
      for (const Member m : members) {
        reports.push_back({m, waits()});
        reports.back().second.step = Step{++steps_};
      }
      if (!sent<wire::CheckpointOrder>(second(reports)).empty()) return true;
    }
    return false;
  }
  std::uint64_t steps_ = 0;
  static wire::Report io(std::string_view what, std::uint64_t done) {
    wire::Report report;
    report.activity = "reconfigure";
    report.io = what;
    report.io_path = "checkpoints/1";
    report.io_done_bytes = done;
    report.io_total_bytes = 100'000'000;
    return report;
  }
  static wire::Report waits() {
    wire::Report report;
    report.activity = "reconfigure";
    return report;
  }
};

TEST_F(JobCheckpointsTest, BelongsToTheStepAtWhichItBeganHoweverLongItIsWritten) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const auto first = begun(1, 8);
  says(w(0), first);
  for (std::uint64_t place = 16; place <= 96; place += 8) trains_to(place);
  ASSERT_EQ(machine->ledger().committed(), 96U);
  const auto store = all<job::StoreCheckpoint>(says(w(0), written(first)));
  ASSERT_EQ(store.size(), 1U);
  EXPECT_EQ(committed_in(store[0]), 8U);
}

// A daemon that another one has succeeded finds out when it commits, before it stores anything.
TEST_F(JobCheckpointsTest, TheTurnThatStoresOneIsCommitted) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const auto announced = begun(1, 8);
  says(w(0), announced);
  for (const auto& told : {announced, begun(2, 8)}) {  // the second was never announced
    const std::size_t records = journal.records.size();
    ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), written(told))).size(), 1U);
    EXPECT_GT(journal.records.size(), records);
  }
}

// The model of that very step may be under way again: its own directory stays.
TEST_F(JobCheckpointsTest, WhatOlderOnesLeftIsRemovedWhenOneFails) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const std::uint64_t generation = machine->membership().generation().value;
  const auto first = begun(1, 8);
  says(w(0), first);
  auto unwritten = written(first);
  unwritten.error = "No space left on device";
  const auto removes = all<job::RemoveUnfinished>(says(w(0), unwritten));
  ASSERT_EQ(removes.size(), 1U);
  EXPECT_EQ(removes[0].up_to, (copies::Age{generation, 7}));
  const auto second = begun(2, 16);
  says(w(0), second);
  ASSERT_TRUE(all<job::RemoveUnfinished>(says(w(0), written(second))).empty());
  const auto after = all<job::RemoveUnfinished>(feed(
      job::CheckpointStored{2, Step{16}, "", "No space left on device", Generation{generation}}));
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].up_to, (copies::Age{generation, 15}));
}

// Its files may still be on the host of its writer only, and are complete.
TEST_F(JobCheckpointsTest, OneThatIsBeingStoredStaysWhenALaterOneFails) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const std::uint64_t generation = machine->membership().generation().value;
  const auto first = begun(1, 8);
  says(w(0), first);
  ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), written_by_w0(first))).size(), 1U);
  const auto second = begun(2, 16);
  says(w(0), second);
  const auto removes = all<job::RemoveUnfinished>(says(w(0), without_room(written_by_w0(second))));
  ASSERT_EQ(removes.size(), 1U);
  EXPECT_EQ(removes[0].up_to, (copies::Age{generation, 7}));
  const auto after = all<job::RemoveUnfinished>(feed(
      job::CheckpointStored{1, Step{8}, "", "a: No space left on device", Generation{generation}}));
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].up_to, (copies::Age{generation, 15})) << "nothing of it is wanted any more";
}

// The writer of an earlier generation finishes its checkpoint, whoever writes the next one.
TEST_F(JobCheckpointsTest, OneThatIsBeingWrittenStaysWhenAnotherMemberCannotWriteALaterOne) {
  place(2);
  settle({w(0), w(1)});
  says(w(0), wire::Fetch{1, 0, 50, {}}, 1);
  const std::uint64_t generation = machine->membership().generation().value;
  auto first = begun(1, 8);
  first.places.push_back({w(1).worker, 0});
  says(w(0), first);
  wire::CheckpointWritten later = written_by_w0(begun(2, 16));
  later.places = {{w(0).worker, 8}, {w(1).worker, 0}};
  const auto removes = all<job::RemoveUnfinished>(says(w(1), without_room(later)));
  ASSERT_EQ(removes.size(), 1U);
  EXPECT_EQ(removes[0].up_to, (copies::Age{generation, 7}));
}

TEST_F(JobCheckpointsTest, IsGoodThoughItsGenerationHasEnded) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const auto first = begun(1, 8);
  says(w(0), first);
  trains_to(16);
  feed(job::SkipOrdered{{50, 51, "unreadable", "operator"}});  // the members join again
  settle({w(0)}, machine->membership().generation(), 24);
  ASSERT_TRUE(machine->membership().settled());
  const auto store = all<job::StoreCheckpoint>(says(w(0), written(first)));
  ASSERT_EQ(store.size(), 1U);
  EXPECT_EQ(committed_in(store[0]), 8U);
  EXPECT_LT(store[0].generation, machine->membership().generation());
}

TEST_F(JobCheckpointsTest, OneOfTrainingIsNotTheTrainedModel) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  const auto late = begun(1, 8);
  says(w(0), late);
  trains_to(100, true);
  ASSERT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), written(late))).size(), 1U) << "but it is kept";
  feed(job::CheckpointStored{1, Step{8}, "s8", ""});
  EXPECT_FALSE(machine->lifecycle().model_kept());
  wire::CheckpointWritten model;
  model.number = 2;
  model.phase = 2;
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), model)).size(), 1U);
  feed(job::CheckpointStored{2, Step{101}, "s101", ""});
  EXPECT_TRUE(machine->lifecycle().model_kept());
}

TEST_F(JobCheckpointsTest, NoOtherIsOrderedWhileOneIsWrittenForAnHour) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  clock.advance(seconds(10));
  ASSERT_EQ(sent<wire::CheckpointOrder>(feed(job::TimePassed{})).size(), 1U);
  const auto first = begun(1, 8);
  says(w(0), first);
  for (std::uint64_t s = 1; s <= 3600; ++s) {
    wire::Report report = io(kWritesCheckpoint, s);
    report.activity = "compute";
    report.step = Step{s};
    const job::Effects outputs = second({{w(0), report}});
    ASSERT_TRUE(sent<wire::CheckpointOrder>(outputs).empty()) << s;
    ASSERT_TRUE(all<lifecycle::StopWorker>(outputs).empty()) << s;
  }
  EXPECT_EQ(io_text(machine->report().workers.at(0).io),
            "writing the checkpoint: 0.0 of 100.0 MB, 0.0 MB/s");
  ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), written(first))).size(), 1U);
  feed(job::CheckpointStored{1, Step{8}, "s8", ""});
  clock.advance(seconds(1));
  EXPECT_EQ(sent<wire::CheckpointOrder>(feed(job::TimePassed{})).size(), 1U) << "it is due by now";
}

TEST_F(JobCheckpointsTest, AWriterThatEndsLeavesTheNextOneToTheOthers) {
  place(2);
  settle({w(0), w(1)});
  says(w(0), wire::Fetch{1, 0, 50, {}}, 1);
  ASSERT_TRUE(orders_within(11, {w(0), w(1)}));
  auto first = begun(1, 8);
  first.places.push_back({w(1).worker, 0});
  says(w(0), first);
  const Generation old = machine->membership().generation();
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  settle({w(1)}, old);
  ASSERT_TRUE(machine->membership().settled());
  EXPECT_TRUE(orders_within(11, {w(1)}));
}

TEST_F(JobCheckpointsTest, AWorkerThatCannotWriteTheModelLeavesItToAnotherHost) {
  host("b");
  host("a");
  lifecycle::WorkersPlaced placed;
  placed.workers = {{w(0).worker, "a", 0}, {w(1).worker, "a", 0}, {w(2).worker, "b", 1}};
  feed(placed);
  for (std::uint32_t i = 0; i < 3; ++i) feed(lifecycle::WorkerStarted{w(i), 100 + i});
  settle({w(0), w(1), w(2)});
  for (std::uint64_t seq = 1; !machine->ledger().complete() && seq < 100; ++seq) {
    const auto& holders = machine->ledger().holders();
    const std::uint64_t granted = seq == 1 ? 0 : holders.at(w(0).worker).end;
    says(w(0), wire::Fetch{1, granted, 100, {}}, seq);
  }
  trains_to(100, true);
  for (const Member m : {w(1), w(2)}) {
    wire::Progress done;
    done.phase = 1;
    done.done = true;
    says(m, done);
  }
  ASSERT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  wire::CheckpointWritten model;
  model.number = 1;
  model.phase = 2;
  model.error = "writing the checkpoint stands still";
  says(w(0), model);
  clock.advance(seconds(3));
  const auto again = sent<wire::PhaseStart>(feed(job::TimePassed{}));
  ASSERT_EQ(again.size(), 3U) << "all hear who writes it now";
  EXPECT_EQ(again[0].second.what, wire::PhaseKind::kFinish);
  EXPECT_EQ(again[0].second.writer, 2U) << "w2 is on the other host";
  EXPECT_EQ(again[0].second.tries, 1U);
}

// What could not be stored is removed, so a report that is repeated is of no use.
TEST_F(JobCheckpointsTest, ASingleMemberWritesTheModelOnceMoreIfItCouldNotBeStored) {
  clock.advance(seconds(10));
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  trains_to(100, true);
  ASSERT_EQ(machine->lifecycle().phase().what, wire::PhaseKind::kFinish);
  wire::CheckpointWritten model;
  model.number = 1;
  model.phase = 2;
  model.step = Step{101};
  ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), model)).size(), 1U);
  EXPECT_THAT(all<job::StoreCheckpoint>(says(w(0), model)), ::testing::IsEmpty())
      << "said again, while it is being stored";
  feed(job::CheckpointStored{1, Step{101}, "", "ledger.json: Stale file handle"});
  clock.advance(std::chrono::milliseconds(100));
  const auto again = sent<wire::PhaseStart>(feed(job::TimePassed{}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].second.what, wire::PhaseKind::kFinish);
  EXPECT_EQ(again[0].second.writer, 0U);
  EXPECT_EQ(again[0].second.tries, 1U);
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), model)).size(), 1U) << "written anew";
  feed(job::CheckpointStored{1, Step{101}, "s101", ""});
  EXPECT_TRUE(machine->lifecycle().model_kept());
}

// ------------------------------------------------------------------ stopping

class JobStopsTest : public JobCheckpointsTest {
 protected:
  // The operator gives it 30 s, and w0 has begun to write.
  JobStopsTest() {
    place(1);
    settle({w(0)});
    says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
    EXPECT_EQ(
        sent<wire::CheckpointOrder>(feed(lifecycle::StopRequested{"operator", seconds(30)})).size(),
        1U);
    says(w(0), begun(1, 8));
  }
  // Returns the seconds until the workers are stopped, while `written(s)` bytes are on the disk
  // after s seconds.
  int stopped_after(int most, const std::function<std::uint64_t(int)>& written) {
    for (int s = 1; s <= most; ++s) {
      if (!all<lifecycle::StopWorker>(second({{w(0), io(kWritesCheckpoint, written(s))}})).empty())
        return s;
    }
    return most + 1;
  }
};

TEST_F(JobStopsTest, AStopWaitsForItsCheckpointAsLongAsBytesAreWritten) {
  ASSERT_EQ(stopped_after(300, [](int s) { return s / 5; }), 301);
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), written(begun(1, 8)))).size(), 1U);
  const auto leave = sent<wire::Leave>(feed(job::CheckpointStored{1, Step{8}, "s8", ""}));
  EXPECT_EQ(leave.size(), 1U);
}

TEST_F(JobCheckpointsTest, WhileMembersMeetAStopWaitsForTheCheckpointThatIsBeingWritten) {
  place(2);
  settle({w(0), w(1)});
  says(w(0), wire::Fetch{1, 0, 50, {}}, 1);
  ASSERT_TRUE(orders_within(11, {w(0), w(1)}));
  auto first = begun(1, 8);
  first.places.push_back({w(1).worker, 0});
  says(w(0), first);
  feed(lifecycle::WorkerExited{w(1), {-1, 9, "", "", ""}});
  job::Effects outputs = feed(lifecycle::StopRequested{"operator", seconds(30)});
  for (std::uint64_t s = 1; s <= 100; ++s) {
    ASSERT_TRUE(all<lifecycle::StopWorker>(outputs).empty()) << s;
    outputs = second({{w(0), io(kWritesCheckpoint, s)}});
  }
  ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), written(first))).size(), 1U);
  const auto stops = all<lifecycle::StopWorker>(feed(job::CheckpointStored{1, Step{8}, "s8", ""}));
  ASSERT_FALSE(stops.empty());
  EXPECT_EQ(stops[0].member, w(0));
  EXPECT_TRUE(machine->lifecycle().outcome()->resumable);
}

TEST_F(JobCheckpointsTest, AStopWhoseCheckpointFailsWaitsForTheOneThatIsBeingStored) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  ASSERT_TRUE(orders_within(11, {w(0)}));
  const auto first = begun(1, 8);
  says(w(0), first);
  ASSERT_EQ(all<job::StoreCheckpoint>(says(w(0), written_by_w0(first))).size(), 1U);
  ASSERT_EQ(
      sent<wire::CheckpointOrder>(feed(lifecycle::StopRequested{"operator", seconds(30)})).size(),
      1U);
  const auto second = begun(2, 16);
  says(w(0), second);
  EXPECT_THAT(sent<wire::Leave>(says(w(0), without_room(written_by_w0(second)))),
              ::testing::IsEmpty());
  EXPECT_EQ(sent<wire::Leave>(feed(job::CheckpointStored{1, Step{8}, "s8", ""})).size(), 1U);
  EXPECT_TRUE(machine->lifecycle().outcome()->resumable);
}

TEST_F(JobStopsTest, AStopDoesNotWaitForADiskThatStandsStill) {
  EXPECT_EQ(stopped_after(300, [](int s) { return std::min(s, 100); }), 110)
      << "ten seconds after the last byte";
}

TEST_F(JobStopsTest, AStopHasItsGraceEvenIfNothingMoves) {
  EXPECT_EQ(stopped_after(300, [](int) { return 1; }), 30);
}

TEST_F(JobStopsTest, ASecondStopWaitsForNoCheckpoint) {
  stopped_after(40, [](int s) { return s; });
  const auto stops =
      all<lifecycle::StopWorker>(feed(lifecycle::StopRequested{"operator", seconds(3)}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].grace, seconds(3));
  EXPECT_EQ(stopped_after(60, [](int s) { return 40 + s; }), 8) << "the grace, and 5 s for an end";
}

// ------------------------------------------------------------------- reading

// Nothing of the evaluation is lost or counted twice, and the next phase follows it.
TEST_F(JobCheckpointsTest, ACheckpointOfAnEvaluationComesBackWithWhatIsEvaluated) {
  JobMachineConfig with = config();
  with.hang_after = seconds(5);
  with.spec.eval_records = 20;
  with.ledger.eval.records = 20;
  with.ledger.eval.shard_records = 10;
  journal = {};
  open(with);
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  trains_to(100, true);
  const auto phase = [&] { return machine->lifecycle().phase(); };
  ASSERT_EQ(phase().what, wire::PhaseKind::kEval);
  says(w(0), wire::Fetch{2, 0, 12, {}}, 2);
  const auto partial = [](std::uint64_t records) {
    wire::EvalPartial sums;
    sums.records = sums.correct = records;
    return sums;
  };
  says(w(0), wire::Fetch{2, 8, 4, {partial(8)}}, 3);
  ASSERT_EQ(machine->ledger().committed(), 8U);
  const auto outputs = feed(lifecycle::StopRequested{"operator", seconds(10)});
  EXPECT_EQ(sent<wire::CheckpointOrder>(outputs).size(), 1U);
  wire::CheckpointBegun begins;
  begins.number = 1;
  begins.phase = 2;
  begins.step = Step{101};
  says(w(0), begins);
  says(w(0), wire::Fetch{2, 12, 4, {partial(4)}}, 4);  // later, so that it is not in it
  const auto stores = all<job::StoreCheckpoint>(says(w(0), written_by_w0(begins)));
  ASSERT_EQ(stores.size(), 1U);

  journal = {};
  open(with);
  place(1);
  settle({w(0)});
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  says(w(0, 2), join());
  feed(job::CheckpointFound{"checkpoints/1", Step{101}, stores[0].ledger_image,
                            stores[0].accounts_image});
  EXPECT_EQ(phase().what, wire::PhaseKind::kEval);
  says(w(0, 2), wire::Address{"here"});
  const auto starts = sent<wire::PhaseStart>(says(w(0, 2), wire::Ready{}));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].second.phase, 2U);
  EXPECT_EQ(machine->ledger().committed(), 8U);
  std::uint64_t at = 0;
  for (std::uint64_t seq = 1; phase().phase == 2 && seq < 20; ++seq) {
    const std::uint64_t held = machine->ledger().outstanding();
    at += held;
    std::vector<wire::EvalPartial> partials;
    if (held > 0) partials.push_back(partial(held));
    says(w(0, 2), wire::Fetch{2, at, 20, partials}, seq);
  }
  EXPECT_EQ(at, 12U);
  EXPECT_EQ(phase().phase, 3U);
  const auto found = machine->report().epoch_reports.at(0).eval;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->records, 20U);
  EXPECT_EQ(found->accuracy, 1);
}

class JobReadsTest : public JobCheckpointsTest {
 protected:
  // Both are new and connected, and go on from a checkpoint.
  JobReadsTest() {
    place(2);
    settle({w(0), w(1)});
    for (const std::uint32_t i : {0U, 1U}) feed(lifecycle::WorkerExited{w(i), {-1, 9, "", "", ""}});
    for (const std::uint32_t i : {0U, 1U}) says(w(i, 2), join());
    feed(job::CheckpointFound{"checkpoints/1", Step{8}, machine->ledger().image(),
                              machine->accounts().image()});
    for (const std::uint32_t i : {0U, 1U}) says(w(i, 2), wire::Address{"here"});
    EXPECT_EQ(machine->membership().state(), Membership::State::kConnecting);
  }
};

TEST_F(JobReadsTest, AllAreWaitedForWhileOneReads) {
  for (std::uint64_t s = 1; s <= 100; ++s) {
    const job::Effects outputs = second({{w(0, 2), io(kReadsCheckpoint, s)}, {w(1, 2), waits()}});
    ASSERT_TRUE(all<lifecycle::StopWorker>(outputs).empty()) << s;
  }
  for (std::uint64_t s = 1; s <= 100; ++s) {
    const job::Effects outputs = second({{w(0, 2), waits()}, {w(1, 2), io(kReceivesState, s)}});
    ASSERT_TRUE(all<lifecycle::StopWorker>(outputs).empty()) << s;
  }
}

// The other one, from which it received, may be the only holder of the state.
TEST_F(JobReadsTest, AReceiverThatFreezesIsEndedAlone) {
  second({{w(0, 2), waits()}, {w(1, 2), io(kReceivesState, 31'000'000)}});
  std::vector<Member> stopped;
  std::size_t aborts = 0;
  for (int s = 0; s < 20; ++s) {
    const job::Effects outputs = second({{w(0, 2), waits()}});
    for (const auto& stop : all<lifecycle::StopWorker>(outputs)) stopped.push_back(stop.member);
    const auto told = sent<wire::Abort>(outputs);
    if (aborts == 0 && !told.empty()) says(w(0, 2), join());
    aborts += told.size();
  }
  EXPECT_GE(aborts, 2U) << "all are called together again";
  ASSERT_FALSE(stopped.empty());
  EXPECT_TRUE(std::ranges::all_of(stopped, [](Member m) { return m == w(1, 2); }));
}

TEST_F(JobReadsTest, TheHungReaderIsEndedWithTheCause) {
  job::Effects outputs;
  for (int s = 0; s < 7 && all<lifecycle::StopWorker>(outputs).empty(); ++s) {
    outputs = second({{w(0, 2), io(kReadsCheckpoint, 31'000'000)}, {w(1, 2), waits()}});
  }
  const auto stopped = all<lifecycle::StopWorker>(outputs);
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_EQ(stopped[0].member, w(0, 2));
  EXPECT_THAT(
      all<job::PublishNote>(outputs).at(0).text,
      HasSubstr("w0 on a is ended: reading the checkpoint checkpoints/1 stands still at 31.0 "
                "of 100.0 MB for 5 s: look at the disk there"));
}

}  // namespace
}  // namespace antdt::ctl
