// Tests of one job as a whole: how a decision of one part affects the others. tests/sim plays whole
// runs with all kinds of faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

class JobMachineTest : public JobFixture {
 protected:
  JobMachineTest() { open(); }

  job::Effects settle(const std::vector<Member>& members, Generation base = {}) {
    for (const Member m : members) says(m, join(base));
    for (const Member m : members) says(m, wire::Address{"here"});
    job::Effects last;
    for (const Member m : members) {
      wire::Ready ready;
      if (base != Generation{}) {
        ready.phase = 1;
        for (const Member b : members) ready.places.push_back({b.worker, 0});
      }
      last = says(m, ready);
    }
    return last;
  }

  // Trains all records that w0 was granted; returns the open phase.
  wire::PhaseKind finish_training() {
    wire::Progress done;
    done.phase = 1;
    done.step = Step{9};
    done.place = 100;
    done.done = true;
    says(w(0), done);
    return machine->lifecycle().phase().what;
  }
};

TEST_F(JobMachineTest, ASettledGroupHearsItsPlanAndThePhase) {
  place(2);
  const job::Effects outputs = settle({w(0), w(1)});
  const auto settles = sent<wire::Settle>(outputs);
  ASSERT_EQ(settles.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& entries = settles[i].second.plan.entries;
    ASSERT_EQ(entries.size(), 1U) << "its own part alone: all would be the members' square";
    EXPECT_EQ(entries.front().worker, settles[i].first.worker);
    EXPECT_EQ(entries.front().micro_batch, 4U);
  }
  EXPECT_EQ(sent<wire::PhaseStart>(outputs).size(), 2U);
}

// Steps of which its tracer tells are steps, however short the script ran.
TEST_F(JobMachineTest, AScriptThatFailsAfterATracedStepIsStartedAgain) {
  for (const std::uint64_t steps : {0U, 8U}) {
    journal = {};
    JobMachineConfig c = config();
    c.spec.protocol = Protocol::kTorchrun;
    c.spec.restart = Restart::kGang;
    c.spec.budgets = {{"program", 1}};
    open(c);
    host("a");
    lifecycle::WorkersPlaced placed;
    placed.workers.push_back({w(0).worker, "a", 0});
    feed(placed);
    feed(lifecycle::GangPrepared{});
    feed(lifecycle::WorkerStarted{w(0), 100});
    wire::Traced traced;
    traced.world_size = 1;
    traced.steps = Step{steps};
    says(w(0), traced);
    wire::ProcessExited exit;
    exit.code = 1;
    const auto outputs = feed(lifecycle::WorkerExited{w(0), exit});
    EXPECT_EQ(all<lifecycle::PrepareGang>(outputs).size(), steps > 0 ? 1U : 0U) << steps;
    EXPECT_EQ(all<lifecycle::EndJob>(outputs).size(), steps > 0 ? 0U : 1U) << steps;
  }
}

TEST_F(JobMachineTest, AnAttemptThatWasReplacedIsTold) {
  place(2);
  settle({w(0), w(1)});
  feed(lifecycle::WorkerExited{w(1), {-1, 9, "", "", ""}});
  const auto refused = sent<wire::Refused>(says(w(1), wire::Fetch{1, 0, 8, {}}, 1));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].second.code, wire::RefusalCode::kStale);
}

TEST_F(JobMachineTest, ARequestRepeatedAfterARestartGetsTheSameAnswer) {
  place(1);
  settle({w(0)});
  const auto first = sent<wire::Grants>(says(w(0), wire::Fetch{1, 0, 8, {}}, 1));
  open();
  const auto again = sent<wire::Grants>(says(w(0), wire::Fetch{1, 0, 8, {}}, 1));
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(first[0].second.pieces.size(), again[0].second.pieces.size());
  EXPECT_EQ(first[0].second.pieces[0].shard, again[0].second.pieces[0].shard);
  EXPECT_EQ(machine->ledger().outstanding(), 8U);
}

TEST_F(JobMachineTest, ASnapshotIsAsGoodAsItsRecords) {
  place(2);
  settle({w(0), w(1)});
  says(w(0), wire::Fetch{1, 0, 8, {}}, 1);
  const std::string before = machine->ledger().image();
  journal.snapshot = machine->snapshot();
  journal.records.clear();
  auto again = JobMachine::open(config(), std::move(*make_solution("none")), journal);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->known());
  EXPECT_EQ(again->ledger().image(), before);
  EXPECT_TRUE(again->membership().settled());
  EXPECT_TRUE(again->lifecycle().is_current(w(1)));
}

TEST_F(JobMachineTest, WhenEveryMemberIsLostTrainingGoesOnFromTheNewestCheckpoint) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 16, {}}, 1);
  wire::CheckpointWritten written;
  written.number = 1;
  written.phase = 1;
  written.step = Step{1};
  written.places = {{w(0).worker, 8}};
  const auto store = all<job::StoreCheckpoint>(says(w(0), written));
  ASSERT_EQ(store.size(), 1U);
  wire::Progress progress;
  progress.phase = 1;
  progress.place = 16;
  progress.step = Step{2};
  says(w(0), progress);
  EXPECT_EQ(machine->ledger().committed(), 16U);
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  ASSERT_EQ(all<job::FindCheckpoint>(says(w(0, 2), join())).size(), 1U);
  const auto forms = sent<wire::Form>(feed(job::CheckpointFound{
      "checkpoints/1", Step{1}, store[0].ledger_image, store[0].accounts_image}));
  ASSERT_EQ(forms.size(), 1U);
  EXPECT_EQ(forms[0].second.restore, "checkpoints/1");
  EXPECT_EQ(machine->ledger().committed(), 8U);
  EXPECT_EQ(machine->accounts().epochs().at(0).once, 8U);
  EXPECT_EQ(machine->membership().lineage(), Lineage{2});
}

TEST_F(JobMachineTest, WhatTheMembersCannotReadJustNowIsLookedForAgainInTheSameLineage) {
  place(1);
  settle({w(0)});
  const std::string ledger = machine->ledger().image(), accounts = machine->accounts().image();
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  says(w(0, 2), join());
  feed(job::CheckpointFound{"checkpoints/2", Step{}, ledger, accounts});
  wire::Join cannot = join();
  cannot.unreadable = "state.bin cannot be read: Stale file handle";
  cannot.may_pass = true;
  const auto asks = all<job::FindCheckpoint>(says(w(0, 2), cannot));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_THAT(asks[0].unread,
              testing::HasSubstr("checkpoints/2: w0 on a: state.bin cannot be read"));
  auto forms =
      sent<wire::Form>(feed(job::CheckpointFound{"checkpoints/2", Step{}, ledger, accounts}));
  ASSERT_EQ(forms.size(), 1U);
  EXPECT_EQ(forms[0].second.restore, "checkpoints/2");
  EXPECT_EQ(machine->membership().lineage(), Lineage{2});
  // Meanwhile somebody has removed it.
  ASSERT_EQ(all<job::FindCheckpoint>(says(w(0, 2), cannot)).size(), 1U);
  forms = sent<wire::Form>(feed(job::CheckpointFound{"checkpoints/1", Step{}, ledger, accounts}));
  ASSERT_EQ(forms.size(), 1U);
  EXPECT_EQ(forms[0].second.restore, "checkpoints/1");
  EXPECT_EQ(machine->membership().lineage(), Lineage{3});
}

TEST_F(JobMachineTest, WithoutACheckpointTrainingBeginsAgain) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 16, {}}, 1);
  feed(lifecycle::WorkerExited{w(0), {-1, 9, "", "", ""}});
  ASSERT_EQ(all<job::FindCheckpoint>(says(w(0, 2), join())).size(), 1U);
  feed(job::CheckpointFound{});
  EXPECT_EQ(machine->ledger().committed(), 0U);
  says(w(0, 2), wire::Address{"here"});
  const auto phases = sent<wire::PhaseStart>(says(w(0, 2), wire::Ready{}));
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].second.phase, 1U);
  const auto grants = sent<wire::Grants>(says(w(0, 2), wire::Fetch{1, 0, 8, {}}, 1));
  EXPECT_EQ(grants.at(0).second.status, wire::GrantStatus::kGranted);
}

TEST_F(JobMachineTest, ACheckpointOfAnEarlierGenerationIsNotTakenForOneOfThis) {
  place(1);
  settle({w(0)});
  const Generation first = machine->membership().generation();
  says(w(0), wire::Fetch{1, 0, 16, {}}, 1);
  wire::CheckpointWritten written;
  written.number = 1;
  written.phase = 1;
  written.places = {{w(0).worker, 8}};
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), written)).size(), 1U);
  feed(job::SkipOrdered{{50, 51, "unreadable", "operator"}});
  says(w(0), join(first));
  says(w(0), wire::Address{"here"});
  wire::Ready ready;
  ready.phase = 1;
  ready.places = {{w(0).worker, 8}};
  says(w(0), ready);
  ASSERT_TRUE(machine->membership().settled());
  says(w(0), wire::Fetch{1, 0, 16, {}}, 2);
  EXPECT_TRUE(all<job::StoreCheckpoint>(feed(job::WorkerSaid{w(0), first, 0, written})).empty());
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), written)).size(), 1U);
}

TEST_F(JobMachineTest, ACheckpointThatComesLateIsNotTheTrainedModel) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  wire::CheckpointWritten late;
  late.number = 1;
  late.phase = 1;
  late.places = {{w(0).worker, 50}};
  finish_training();
  EXPECT_TRUE(all<job::StoreCheckpoint>(says(w(0), late)).empty());
  wire::CheckpointWritten model;
  model.number = 2;
  model.phase = 2;
  EXPECT_EQ(all<job::StoreCheckpoint>(says(w(0), model)).size(), 1U);
}

TEST_F(JobMachineTest, ALateMessageOfAnEarlierGenerationBeginsNoPhaseInAFormingOne) {
  place(1);
  settle({w(0)});
  const Generation first = machine->membership().generation();
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  finish_training();
  wire::Progress done;
  done.phase = 1;
  done.done = true;
  EXPECT_EQ(sent<wire::PhaseStart>(says(w(0), done)).size(), 1U) << "it may not have heard of it";
  says(w(0), join(first));
  ASSERT_FALSE(machine->membership().settled());
  EXPECT_TRUE(sent<wire::PhaseStart>(feed(job::WorkerSaid{w(0), first, 0, done})).empty());
}

TEST_F(JobMachineTest, TheOrderToWriteTheModelIsRepeated) {
  place(1);
  settle({w(0)});
  says(w(0), wire::Fetch{1, 0, 100, {}}, 1);
  EXPECT_EQ(finish_training(), wire::PhaseKind::kFinish);
  EXPECT_TRUE(sent<wire::PhaseStart>(feed(job::TimePassed{})).empty());
  clock.advance(seconds(3));
  EXPECT_EQ(sent<wire::PhaseStart>(feed(job::TimePassed{})).at(0).second.what,
            wire::PhaseKind::kFinish);
  clock.advance(config().hang_after);
  const auto stops = all<lifecycle::StopWorker>(feed(job::TimePassed{}));
  EXPECT_EQ(stops.size(), 1U) << "it has said nothing at all";
}

TEST_F(JobMachineTest, NobodyIsExpectedToMakeStepsWhileTheDiskIsFull) {
  place(1);
  settle({w(0)});
  feed(job::PauseChanged{true});
  feed(job::SkipOrdered{{50, 51, "unreadable", "operator"}});  // meanwhile the members join again
  settle({w(0)}, machine->membership().generation());
  ASSERT_TRUE(machine->membership().settled());
  const Generation settled = machine->membership().generation();
  const auto time_passes = [&] {
    for (int i = 0; i < 150; ++i) {
      clock.advance(seconds(1));
      wire::Metrics alive;
      alive.sum.activity = "shard_wait";
      says(w(0), alive);
      EXPECT_TRUE(all<lifecycle::StopWorker>(feed(job::TimePassed{})).empty());
    }
  };
  time_passes();
  EXPECT_TRUE(machine->membership().settled());
  feed(job::PauseChanged{false});
  clock.advance(config().hang_after + seconds(1));
  EXPECT_FALSE(all<lifecycle::StopWorker>(feed(job::TimePassed{})).empty())
      << "now steps are expected";
  EXPECT_EQ(machine->membership().generation(), settled);
}

TEST_F(JobMachineTest, AProcessThatItsAgentForgotIsGoneAfterAMoment) {
  place(1);
  settle({w(0)});
  host("a", {});
  EXPECT_TRUE(all<lifecycle::StartWorker>(feed(job::TimePassed{})).empty())
      << "its end may still be reported";
  clock.advance(seconds(6));
  EXPECT_EQ(all<lifecycle::StartWorker>(feed(job::TimePassed{})).at(0).member, w(0, 2));
}

TEST_F(JobMachineTest, AProcessReplacedWhileItsHostWasAwayIsEndedWhenTheHostComesBack) {
  place(1);
  settle({w(0)});
  feed(lifecycle::HostLost{"a", "silent"});
  host("a");
  job::Effects outputs;
  HostState h;
  h.host = h.name = "a";
  h.room = 4;
  const auto stops =
      all<lifecycle::StopWorker>(feed(job::HostWelcomed{h, {{w(0).worker, Attempt{1}, 9}}}));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].member, w(0, 1));
}

// The report of its start was for a job daemon that died.
TEST_F(JobMachineTest, AProcessOfWhichOnlyItsHostsListTellsHasItsPid) {
  host("a");
  feed(lifecycle::WorkersPlaced{{{w(0).worker, "a", 0}}});
  settle({w(0)});
  const auto pid = [&] { return machine->lifecycle().find(w(0).worker)->pid; };
  EXPECT_EQ(pid(), 0U);
  host("a", {{w(0).worker, Attempt{1}, 0}});
  EXPECT_EQ(pid(), 0U) << "the agent has not heard of it yet";
  host("a", {{w(0).worker, Attempt{1}, 9}});
  EXPECT_EQ(pid(), 9U);
  EXPECT_EQ(machine->lifecycle().find(w(0).worker)->state, WorkerProcess::kJoined);
}

// The agent that was to pass it on may have begun anew, and lost what it had.
TEST_F(JobMachineTest, APlanIsRepeatedToTheMembersThatDoNotTrainWithIt) {
  place(2);
  settle({w(0), w(1)});
  const PlanVersion first = machine->plan().version;
  const auto trains_with = [&](Member member, PlanVersion version) {
    wire::Progress progress;
    progress.phase = 1;
    progress.plan = version;
    says(member, progress);
  };
  const auto told = [&](Duration later) {
    clock.advance(later);
    std::vector<Member> members;
    for (const auto& [to, plan] : sent<wire::Plan>(feed(job::ControlTickPassed{}))) {
      EXPECT_EQ(plan.version, machine->plan().version);
      EXPECT_EQ(plan.entries.size(), 1U);
      members.push_back(to);
    }
    return members;
  };
  trains_with(w(0), first);
  trains_with(w(1), first);
  EXPECT_TRUE(told(seconds(11)).empty()) << "all have it";
  Decision other;
  other.actions.push_back(AdjustBatch{{{w(0).worker, 6}, {w(1).worker, 2}}, w(1).worker});
  const auto outputs = feed(job::DecisionReceived{other, first});
  ASSERT_EQ(sent<wire::Plan>(outputs).size(), 2U);
  ASSERT_GT(machine->plan().version, first);
  EXPECT_TRUE(told(seconds(1)).empty()) << "it is on its way";
  EXPECT_EQ(told(seconds(2)), (std::vector{w(0), w(1)})) << "one of them may never have heard it";
  EXPECT_TRUE(told(seconds(1)).empty());
  trains_with(w(1), first);  // a report from before
  EXPECT_EQ(told(seconds(1)), (std::vector{w(0), w(1)}));
  trains_with(w(0), machine->plan().version);
  EXPECT_EQ(told(seconds(2)), std::vector{w(1)});
  trains_with(w(1), machine->plan().version);
  EXPECT_TRUE(told(seconds(5)).empty());
}

TEST_F(JobMachineTest, WhatCannotBeDoneIsRecordedAsRefused) {
  JobMachineConfig c = config();
  c.spec.restart = Restart::kGang;
  c.control.allow = {"kill-restart"};
  c.control.max_actions_per_hour = 1;
  journal = {};
  open(c);
  place(2);
  settle({w(0), w(1)});
  const PlanVersion plan = machine->plan().version;
  wire::Progress progress;
  progress.phase = 1;
  progress.plan = plan;
  says(w(0), progress);
  Decision restart;
  restart.actions.push_back(KillRestart{w(1)});
  restart.reason = "it is slow";
  for (std::size_t wished = 1; wished < 4; ++wished) {
    clock.advance(seconds(61));
    const auto outputs = feed(job::DecisionReceived{restart, plan});
    EXPECT_TRUE(all<lifecycle::StopWorker>(outputs).empty());
    const auto actions = machine->report().actions;
    ASSERT_EQ(actions.size(), wished);
    EXPECT_EQ(actions.back().outcome, "refused") << "and none of the one action of this hour";
    EXPECT_THAT(actions.back().reason, testing::HasSubstr("it is slow (refused: the workers of"));
  }
}

TEST_F(JobMachineTest, MoreWorkersThanTheGlobalBatchCanBeSpreadOverAreRefused) {
  place(1);
  settle({w(0)});
  host("b");
  host("c");
  EXPECT_TRUE(machine->check(lifecycle::WorkerCountRequested{8, "operator"}));
  const Status refused = machine->check(lifecycle::WorkerCountRequested{9, "operator"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("global batch"));
}

}  // namespace
}  // namespace antdt::ctl
