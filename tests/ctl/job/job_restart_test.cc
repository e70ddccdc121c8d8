// What the report of a job says of times, speeds and samples after its daemon was started again, or
// training has gone back to a checkpoint.
#include <gtest/gtest.h>

#include "core/wire/packet.h"
#include "ctl/job/newest_image.h"
#include "tests/ctl/job/job_fixture.h"
#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

class JobRestartTest : public JobFixture {
 protected:
  JobRestartTest() { open(); }

  void settle(const std::vector<Member>& members) {
    for (const Member m : members) says(m, join());
    for (const Member m : members) says(m, wire::Address{"here"});
    for (const Member m : members) says(m, wire::Ready{});
    says(members.front(), wire::Fetch{1, 0, 100, {}}, 1);
  }
  void settle_again(const std::vector<Member>& members) {
    const Generation base = machine->membership().base();
    for (const Member m : members) says(m, m.attempt == Attempt{1} ? join(base, {}) : join());
    for (const Member m : members) says(m, wire::Address{"here"});
    for (const Member m : members) says(m, wire::Ready{});
  }
  // A second passes, in which the group has trained this many samples of the phase.
  void second(Member m, std::uint64_t samples, bool done = false) {
    clock.advance(seconds(1) - std::chrono::milliseconds(2));
    feed(job::TimePassed{});
    wire::Progress p;
    p.phase = 1;
    p.step = Step{samples};
    p.place = p.samples = samples;
    p.done = done;
    says(m, p);
  }
  void measures(Member m, std::uint64_t samples, double computing) {
    wire::Report sum;
    sum.samples_total = samples;
    sum.account.compute = computing;
    says(m, wire::Metrics{sum, 1000});
  }
  // As after kill -9 of all processes and `antdt run --resume`.
  void resume() {
    auto opened = JobMachine::open(config(), std::move(*make_solution("none")), journal);
    ASSERT_TRUE(opened) << opened.error().message;
    machine.emplace(std::move(*opened));
    feed(job::ResumeOrdered{});
  }
  [[nodiscard]] WorkerReport reported(Member m) const {
    for (const WorkerReport& r : machine->report().workers) {
      if (r.worker == m.worker) return r;
    }
    return {};
  }
  // As a release wrote it that did not know of the time of training.
  void forget_times() {
    std::erase_if(journal.records, [](const auto& e) { return e.kind == kClockRecord; });
    for (shard_server::JournalEntry& entry : journal.records) {
      if (entry.kind != kImageRecord) continue;
      auto image = wire::decode<JobImage>(entry.bytes);
      ASSERT_TRUE(image);
      image->training.reset();
      entry.bytes = wire::encode(*image);
    }
  }
};

TEST_F(JobRestartTest, AHostThatWasEvictedIsKnownByTheJournalAndStaysEvictedInAResumedRun) {
  EXPECT_FALSE(newest_image({}).value().has_value());
  const auto evicted = [](const shard_server::JournalContent& content) {
    return evicted_hosts(newest_image(content).value().value());
  };
  place(2);
  host("b");
  settle({w(0), w(1)});
  EXPECT_TRUE(evicted(journal).empty());
  feed(lifecycle::EvictionRequested{"b", "its fan is loud", seconds(9)});
  EXPECT_EQ(evicted(journal), std::set<std::string>{"b"});
  EXPECT_EQ(evicted({machine->snapshot(), {}}), std::set<std::string>{"b"});
  resume();
  host("a");
  host("b");
  EXPECT_EQ(evicted(journal), std::set<std::string>{"b"});
}

// The first workers took two minutes, and nothing else shows how long a restart takes.
TEST_F(JobRestartTest, ARestartTakesNoDaysIfAWorkerIsRemovedForDays) {
  place(2);
  clock.advance(seconds(120));
  settle({w(0), w(1)});
  feed(job::ControlTickPassed{});
  feed(lifecycle::WorkerCountRequested{1, "a test"});
  feed(lifecycle::WorkerExited{w(1), {kExitResumable, 0, "", "", ""}});
  settle_again({w(0)});
  feed(job::ControlTickPassed{});
  clock.advance(std::chrono::hours(48));
  feed(lifecycle::WorkerCountRequested{2, "a test"});
  feed(lifecycle::WorkerStarted{w(1, 2), 200});
  settle_again({w(1, 2), w(0)});  // the newcomer's join ends the generation
  wire::Progress in_force;
  in_force.phase = 1;
  in_force.plan = PlanVersion{3};
  says(w(0), in_force);
  clock.advance(seconds(30));
  feed(job::ControlTickPassed{});
  const ClusterView* const view = machine->view_to_decide(clock.now());
  ASSERT_NE(view, nullptr);
  ASSERT_TRUE(view->restart_time);
  EXPECT_NEAR(to_seconds(*view->restart_time), 120, 1);
}

TEST_F(JobRestartTest, SamplesOfBeforeTheRestartAreNotTakenForNewOnes) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 5; ++s) second(w(0), 10 * s);
  EXPECT_NEAR(machine->report().samples_per_second, 10, 0.1);
  open();
  second(w(0), 60);
  EXPECT_EQ(machine->report().samples_per_second, 0) << "not known yet";
  second(w(0), 70);
  EXPECT_NEAR(machine->report().samples_per_second, 10, 0.1);
}

TEST_F(JobRestartTest, TheTimeOfTrainingIncludesThatBeforeTheRestart) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 5; ++s) second(w(0), 10 * s);
  open();
  feed(job::TimePassed{});
  for (std::uint64_t s = 6; s <= 10; ++s) second(w(0), 10 * s, s == 10);
  const JobReport r = machine->report();
  ASSERT_NE(machine->lifecycle().phase().what, wire::PhaseKind::kTrain);
  EXPECT_EQ(r.epoch_reports.at(0).samples, 100U);
  EXPECT_NEAR(r.epoch_reports.at(0).seconds, 10, 0.2);
  EXPECT_NEAR(r.training_seconds, 10, 0.2);
  EXPECT_NEAR(r.samples_per_second, 10, 0.2);
  EXPECT_NEAR(r.wall_seconds, 10, 0.2)
      << "though the job's image was last written at its beginning";
  open();
  EXPECT_NEAR(machine->report().training_seconds, 10, 0.2);
}

TEST_F(JobRestartTest, ASnapshotIsEnoughForTheTimeOfTraining) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 5; ++s) second(w(0), 10 * s);
  journal = {machine->snapshot(), {}};
  auto again = JobMachine::open(config(), std::move(*make_solution("none")), journal);
  ASSERT_TRUE(again);
  machine.emplace(std::move(*again));
  feed(job::IncarnationRecovered{});
  for (std::uint64_t s = 6; s <= 10; ++s) second(w(0), 10 * s, s == 10);
  EXPECT_NEAR(machine->report().training_seconds, 10, 0.2);
}

TEST_F(JobRestartTest, WhatAnOlderJournalDoesNotKnowIsNotMadeUp) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 5; ++s) second(w(0), 10 * s);
  forget_times();
  open();
  for (std::uint64_t s = 6; s <= 10; ++s) second(w(0), 10 * s, s == 10);
  const JobReport r = machine->report();
  EXPECT_EQ(r.epoch_reports.at(0).samples, 100U);
  EXPECT_EQ(r.epoch_reports.at(0).seconds, 0);
  EXPECT_EQ(r.training_seconds, 0);
  EXPECT_EQ(r.samples_per_second, 0);
}

TEST_F(JobRestartTest, TheTimeOfWhatIsTrainedOnceMoreIsCounted) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 4; ++s) second(w(0), 10 * s);
  wire::CheckpointWritten written;
  written.number = 1;
  written.phase = 1;
  written.step = Step{40};
  written.places = {{w(0).worker, 40}};
  const auto store = all<job::StoreCheckpoint>(says(w(0), written));
  ASSERT_EQ(store.size(), 1U);
  for (std::uint64_t s = 5; s <= 6; ++s) second(w(0), 10 * s);
  resume();
  host("a");
  feed(job::TimePassed{});
  feed(lifecycle::WorkerStarted{w(0, 2), 200});
  ASSERT_EQ(all<job::FindCheckpoint>(says(w(0, 2), join())).size(), 1U);
  feed(job::CheckpointFound{"checkpoints/1", Step{40}, store[0].ledger_image,
                            store[0].accounts_image});
  says(w(0, 2), wire::Address{"here"});
  wire::Ready ready;
  ready.phase = 1;
  ready.step = Step{40};
  says(w(0, 2), ready);
  says(w(0, 2), wire::Fetch{1, 0, 100, {}}, 1);
  const auto progress = [&](std::uint64_t place, bool done) {
    clock.advance(seconds(1) - std::chrono::milliseconds(2));
    feed(job::TimePassed{});
    wire::Progress p;
    p.phase = 1;
    p.step = Step{40 + place};
    p.place = place;
    p.samples = 40 + place;
    p.done = done;
    says(w(0, 2), p);
  };
  progress(10, false);
  EXPECT_EQ(machine->report().samples_per_second, 0) << "not known yet";
  progress(20, false);
  EXPECT_NEAR(machine->report().samples_per_second, 10, 0.1);
  for (std::uint64_t s = 3; s <= 6; ++s) progress(10 * s, s == 6);
  const JobReport r = machine->report();
  EXPECT_EQ(r.epoch_reports.at(0).samples, 100U);
  EXPECT_NEAR(r.epoch_reports.at(0).seconds, 6 + 6, 0.3);
  EXPECT_NEAR(r.training_seconds, 12, 0.3);
  EXPECT_NEAR(r.samples_per_second, 100.0 / 12, 0.3);
}

TEST_F(JobRestartTest, AWorkerThatHasLeftKeepsItsSamples) {
  place(2);
  settle({w(0), w(1)});
  measures(w(0), 60, 6);
  measures(w(1), 40, 4);
  feed(lifecycle::WorkerExited{w(1), {-1, 9, "", "", ""}});
  open();
  EXPECT_EQ(reported(w(1)).samples, 40U);
  EXPECT_EQ(reported(w(1)).time.compute, 4);
  EXPECT_EQ(reported(w(0)).samples, 0U) << "it tells them itself";
  measures(w(0), 70, 7);
  EXPECT_EQ(reported(w(0)).samples, 70U);
  measures(w(1, 2), 5, 1);
  EXPECT_EQ(reported(w(1)).samples, 45U);
  journal = {machine->snapshot(), {}};
  open();
  EXPECT_EQ(reported(w(1)).samples, 40U);
}

TEST_F(JobRestartTest, WhatWorkersHadDoneAtACheckpointIsKnownIfAllAreLost) {
  place(2);
  settle({w(0), w(1)});
  measures(w(0), 60, 6);
  measures(w(1), 40, 4);
  feed(job::CheckpointStored{1, Step{1}, "1", ""});
  measures(w(0), 65, 6.5);
  resume();
  EXPECT_EQ(reported(w(0)).samples, 60U);
  EXPECT_EQ(reported(w(1)).samples, 40U);
  EXPECT_GE(reported(w(0)).wall_seconds, 6) << "it lived no shorter than it computed";
}

TEST_F(JobRestartTest, TheLifeOfAWorkerBeginsWithItsStart) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 5; ++s) second(w(0), 10 * s);
  open();
  clock.advance(seconds(1));
  feed(job::TimePassed{});
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  EXPECT_NEAR(reported(w(0)).wall_seconds, 6, 0.2);
}

TEST_F(JobRestartTest, APausedJobHasNoSpeed) {
  place(1);
  settle({w(0)});
  for (std::uint64_t s = 1; s <= 3; ++s) second(w(0), 10 * s);
  feed(job::PauseChanged{true});
  EXPECT_TRUE(machine->report().paused);
  EXPECT_EQ(machine->report().samples_per_second, 0);
  feed(job::PauseChanged{false});
  EXPECT_FALSE(machine->report().paused);
  EXPECT_GT(machine->report().samples_per_second, 0);
}

class JobServersRestartTest : public JobServersTest {};

TEST_F(JobServersRestartTest, DecisionsOfEarlierGroupsAndOfServersThatEndedStayCounted) {
  start();
  const auto pushes = [&] {
    const JobReport r = machine->report();
    std::uint64_t sum = r.decided_before.pushes_applied;
    for (const ServerReport& server : r.servers) sum += server.said.pushes_applied;
    return sum;
  };
  wire::PsStats decided;
  decided.pushes_applied = 900;
  decided.staleness_pushes = 90;
  says(s(0), decided);
  decided.pushes_applied = 12;
  decided.staleness_pushes = 1;
  says(s(0), decided);
  EXPECT_EQ(pushes(), 912U) << "a server begins to count anew with each group that it serves";
  EXPECT_EQ(machine->report().decided_before.staleness_pushes, 90U);
  decided.pushes_applied = 7;
  says(s(1), decided);
  exits(s(1), SIGKILL);
  EXPECT_EQ(pushes(), 919U);
  open(with_servers());
  EXPECT_EQ(pushes(), 907U) << "the server that lives tells its own";
  decided.pushes_applied = 12;
  says(s(0), decided);
  EXPECT_EQ(pushes(), 919U);
}

}  // namespace
}  // namespace antdt::ctl
