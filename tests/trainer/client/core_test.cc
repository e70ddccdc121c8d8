#include <gmock/gmock.h>

#include "trainer/client/client_core.h"

namespace antdt::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class ClientCoreTest : public ::testing::Test {
 protected:
  // The effects of a step, with the messages separate.
  struct Wanted {
    std::vector<SendMessage> send;
    std::optional<Generation> abort;
  };
  Wanted step(const Input& input) {
    Effects effects;
    core.step(input, now, effects);
    Wanted wanted;
    for (Effect& effect : effects) {
      if (auto* message = std::get_if<SendMessage>(&effect)) {
        wanted.send.push_back(std::move(*message));
      } else {
        wanted.abort = std::get<ReleaseCollective>(effect).generation;
      }
    }
    return wanted;
  }
  // The last step of that generation that is known to be recorded.
  [[nodiscard]] Step steps_recorded(Generation generation) const {
    const Known known = core.known();
    return known.recorded_of == generation ? known.recorded : Step{};
  }
  Wanted receive(Inbound body, Generation generation = Generation{1}, std::uint64_t seq = 0) {
    return step(MessageReceived{generation, seq, std::move(body)});
  }
  void welcome() {
    step(Greet{});
    receive(wire::WorkerWelcome{1, "host", "/run", "{}"}, Generation{});
  }
  // The bodies of one kind among the effects.
  template <class T>
  static std::vector<T> sent(const Wanted& effects) {
    std::vector<T> found;
    for (const SendMessage& message : effects.send) {
      if (const T* body = std::get_if<T>(&message.body)) found.push_back(*body);
    }
    return found;
  }
  // How many messages there are in addition to the reports.
  static std::size_t said(const Wanted& effects) {
    return effects.send.size() - sent<wire::Report>(effects).size();
  }
  template <class T>
  bool next_is() {
    const auto directive = core.next_directive();
    return directive && std::holds_alternative<T>(directive->order);
  }

  ClientCore core;
  MonoTime now{seconds(1000)};
};

TEST_F(ClientCoreTest, HelloIsRepeatedUntilTheWelcome) {
  EXPECT_EQ(sent<wire::Hello>(step(Greet{})).size(), 1U);
  now += seconds(2);
  EXPECT_EQ(sent<wire::Hello>(step(TimePassed{})).size(), 1U);
  receive(wire::WorkerWelcome{1, "host", "/run", "{}"}, Generation{});
  now += seconds(10);
  EXPECT_TRUE(sent<wire::Hello>(step(TimePassed{})).empty());
  EXPECT_EQ(core.welcome()->host, "host");
}

TEST_F(ClientCoreTest, AVersionThatIsNotSpokenIsAnErrorThatNamesBoth) {
  step(Greet{});
  receive(wire::WorkerWelcome{9, "", "", ""}, Generation{});
  ASSERT_TRUE(core.refusal());
  EXPECT_THAT(core.refusal()->message, HasSubstr("version 9, this worker speaks 1 to 1"));
}

TEST_F(ClientCoreTest, AStaleAttemptIsRefusedForGood) {
  welcome();
  receive(wire::Refused{wire::RefusalCode::kStale, "attempt 1 of w0 was replaced by attempt 2"});
  ASSERT_TRUE(core.refusal());
  EXPECT_EQ(core.refusal()->kind, ErrorKind::kRefused);
  EXPECT_THAT(core.refusal()->message, HasSubstr("replaced by attempt 2"));
  EXPECT_FALSE(core.deadline());
}

TEST_F(ClientCoreTest, AnAgentThatStartedAnewIsGreetedAgain) {
  welcome();
  EXPECT_EQ(sent<wire::Hello>(receive(wire::Refused{wire::RefusalCode::kUnknown, "who?"})).size(),
            1U);
  EXPECT_FALSE(core.refusal());
}

TEST_F(ClientCoreTest, BusyIsNotFinal) {
  welcome();
  receive(wire::Refused{wire::RefusalCode::kBusy, "later"});
  EXPECT_FALSE(core.refusal());
}

TEST_F(ClientCoreTest, JoinAddressAndReadyAreRepeatedUntilTheirAnswer) {
  welcome();
  EXPECT_EQ(sent<wire::Join>(step(wire::Join{})).size(), 1U);
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
  receive(wire::Form{0, 2, 7, {}, {}});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);

  ASSERT_TRUE(next_is<wire::Form>());
  step(wire::Address{"l"});
  now += seconds(2);
  const Wanted again = step(TimePassed{});
  EXPECT_EQ(sent<wire::Address>(again).size(), 1U);
  EXPECT_EQ(again.send[0].generation, Generation{1});
  receive(wire::Roster{});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);

  step(wire::Ready{Step{3}, 9, 0, {}});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Ready>(step(TimePassed{})).size(), 1U);
  receive(wire::Settle{});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Ready>(step(TimePassed{})).size(), 1U) << "the phase is not there yet";
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);
}

TEST_F(ClientCoreTest, APhaseThatComesBeforeItsSettleBeginsAfterIt) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}});
  ASSERT_TRUE(next_is<wire::Form>());
  step(wire::Ready{Step{3}, 9, 0, {}});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
  EXPECT_FALSE(core.next_directive()) << "to train without is to count from another place";
  now += seconds(2);
  EXPECT_EQ(sent<wire::Ready>(step(TimePassed{})).size(), 1U) << "the Settle may be lost";
  receive(wire::Settle{});
  EXPECT_TRUE(next_is<wire::Settle>());
  EXPECT_TRUE(next_is<wire::PhaseStart>());
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
  EXPECT_FALSE(core.next_directive());
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);
}

TEST_F(ClientCoreTest, ARepeatedOrderIsGivenOutOnce) {
  welcome();
  for (int i = 0; i < 2; ++i) receive(wire::Form{0, 2, 7, {}, {}});
  for (int i = 0; i < 2; ++i)
    receive(wire::PhaseStart{3, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
  receive(wire::PhaseStart{4, wire::PhaseKind::kEval, Epoch{0}, 10, 0});
  EXPECT_TRUE(next_is<wire::Form>());
  EXPECT_TRUE(next_is<wire::PhaseStart>());
  EXPECT_TRUE(next_is<wire::PhaseStart>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, APhaseThatIsOverIsNotBegunAgain) {
  welcome();
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
  receive(wire::PhaseStart{2, wire::PhaseKind::kEval, Epoch{0}, 10, 0});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 100});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{2});
  EXPECT_TRUE(next_is<wire::PhaseStart>()) << "of a new generation, from a checkpoint";
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, OrdersOfAGenerationThatIsOverAreLeftOut) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{1});
  receive(wire::Roster{}, Generation{1});
  receive(wire::Form{0, 3, 8, {}, {}}, Generation{2});
  receive(wire::Roster{}, Generation{1});
  const auto directive = core.next_directive();
  ASSERT_TRUE(directive);
  EXPECT_EQ(directive->generation, Generation{2});
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, AnAbortReleasesTheCollectiveAtOnceAndIsAnOrderToo) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{1});
  receive(wire::Roster{}, Generation{1});
  const Wanted effects = receive(wire::Abort{"w1 was lost"}, Generation{1});
  EXPECT_EQ(effects.abort, Generation{1});
  EXPECT_EQ(core.orders().abort_waiting(), Generation{1});
  EXPECT_TRUE(next_is<wire::Abort>());
  EXPECT_FALSE(core.orders().abort_waiting());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, AnAbortOfAnEarlierGenerationIsIgnored) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{2});
  EXPECT_FALSE(receive(wire::Abort{"late"}, Generation{1}).abort);
}

TEST_F(ClientCoreTest, ALaterGenerationReleasesTheCollectiveOfOneWhoseAbortWasLost) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{2});
  EXPECT_EQ(receive(wire::Form{0, 1, 8, {}, {}}, Generation{4}).abort, Generation{2});
}

TEST_F(ClientCoreTest, AJoinOutlivesTheAbortAndWhatElseComesOfTheGenerationBefore) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{1});
  ASSERT_TRUE(next_is<wire::Form>());
  step(wire::Join{});
  receive(wire::Regroup{"w2 comes"}, Generation{1});
  receive(wire::Settle{}, Generation{1});
  receive(wire::PhaseStart{3, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  receive(wire::Abort{"w1 was lost"}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
  receive(wire::Form{0, 1, 8, {}, {}}, Generation{2});
  now += seconds(2);
  EXPECT_TRUE(sent<wire::Join>(step(TimePassed{})).empty());
}

TEST_F(ClientCoreTest, ThatAGenerationSettledIsGivenOutThoughItWasAbortedSince) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{1});
  ASSERT_TRUE(next_is<wire::Form>());
  receive(wire::Settle{}, Generation{1});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  receive(wire::Abort{"w1 was lost"}, Generation{1});
  EXPECT_TRUE(next_is<wire::Settle>());
  EXPECT_TRUE(next_is<wire::Abort>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, ARegroupIsRememberedForItsGenerationAndIsAnOrderToo) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{2});
  ASSERT_TRUE(next_is<wire::Form>());
  EXPECT_FALSE(core.orders().regroup_requested());
  receive(wire::Regroup{"late"}, Generation{1});
  EXPECT_FALSE(core.orders().regroup_requested()) << "it was of an earlier generation";
  EXPECT_FALSE(core.next_directive());
  EXPECT_FALSE(receive(wire::Regroup{"w2 comes"}, Generation{2}).abort);
  EXPECT_TRUE(core.orders().regroup_requested());
  receive(wire::Regroup{"w2 comes"}, Generation{2});
  EXPECT_TRUE(next_is<wire::Regroup>());
  EXPECT_FALSE(core.next_directive()) << "a repeated one is given out once";
  receive(wire::Form{0, 3, 8, {}, {}}, Generation{3});
  EXPECT_TRUE(core.orders().regroup_requested()) << "the new generation was not taken up yet";
  ASSERT_TRUE(next_is<wire::Form>());
  EXPECT_FALSE(core.orders().regroup_requested());
}

TEST_F(ClientCoreTest, SomethingIsReportedEverySecondThoughNothingIsNew) {
  welcome();
  EXPECT_EQ(core.deadline(), now + seconds(1));
  now += milliseconds(999);
  EXPECT_TRUE(step(TimePassed{}).send.empty());
  core.set_activity("collective_wait");
  wire::Ready ready;
  ready.step = Step{41};
  step(ready);
  now += milliseconds(1);
  const auto first = sent<wire::Report>(step(TimePassed{}));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].activity, "collective_wait");
  EXPECT_EQ(first[0].step, Step{41});
  EXPECT_EQ(first[0].batches, 0U);
  now += seconds(1);
  EXPECT_EQ(sent<wire::Report>(step(TimePassed{})).size(), 1U);
  step(wire::Bye{});
  EXPECT_FALSE(core.deadline()) << "the bye is the last message";
}

TEST_F(ClientCoreTest, WhatWasExchangedIsReportedOnceASecondAndAtTheEnd) {
  welcome();
  const auto exchanged = [](std::uint64_t bytes) {
    wire::TrafficSums traffic;
    traffic.gradients = bytes;
    traffic.hosts = {{"a", "b", bytes, bytes, 5}};
    return traffic;
  };
  std::vector<std::uint64_t> told;
  for (std::uint64_t i = 1; i <= 30; ++i) {  // in 3 seconds
    core.set_traffic(exchanged(i));
    for (const wire::Report& report : sent<wire::Report>(step(BatchTimes{10, {}, {}, {}, true}))) {
      if (!report.traffic.hosts.empty()) told.push_back(report.traffic.hosts[0].sent_bytes);
    }
    now += milliseconds(100);
  }
  EXPECT_THAT(told, testing::ElementsAre(1, 11, 21));
  const auto bye = sent<wire::Bye>(step(wire::Bye{}));
  ASSERT_EQ(bye.size(), 1U);
  EXPECT_EQ(bye[0].traffic.gradients, 30U);
  EXPECT_EQ(bye[0].traffic.hosts[0].to, "b");
}

TEST_F(ClientCoreTest, AReportThatWasSentPutsThePulseOff) {
  welcome();
  now += milliseconds(900);
  wire::Progress progress;
  progress.step = Step{7};
  step(progress);
  const auto report = sent<wire::Report>(step(BatchTimes{10, {}, milliseconds(4), {}, true}));
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].step, Step{7});
  now += milliseconds(999);
  EXPECT_TRUE(sent<wire::Report>(step(TimePassed{})).empty());
  now += milliseconds(1);
  EXPECT_EQ(sent<wire::Report>(step(TimePassed{})).size(), 1U);
}

TEST_F(ClientCoreTest, ABatchThatCameTooLateSaysHowFastItWasAndIsNotCountedAsTrained) {
  welcome();
  step(BatchTimes{10, {}, milliseconds(4), {}, true});
  now += milliseconds(60);
  BatchTimes late{10, {}, milliseconds(6), {}, true};
  late.in_model = false;
  const auto report = sent<wire::Report>(step(late));
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].samples, 10U);
  EXPECT_EQ(report[0].compute_us, 6000U);
  EXPECT_EQ(report[0].samples_total, 10U);
}

TEST_F(ClientCoreTest, TheNewestPlanIsHeldAndOlderOnesAreKept) {
  welcome();
  EXPECT_EQ(core.orders().held_plan(), PlanVersion{0});
  wire::Settle settle;
  settle.plan.version = PlanVersion{3};
  receive(settle);
  receive(wire::Plan{PlanVersion{5}, {{WorkerId{'w', 0}, 7, 2}}});
  EXPECT_EQ(core.orders().held_plan(), PlanVersion{5});
  EXPECT_EQ(core.orders().plan(PlanVersion{5})->entries[0].micro_batch, 7U);
  EXPECT_TRUE(core.orders().plan(PlanVersion{3}));
  EXPECT_FALSE(core.orders().plan(PlanVersion{4}));
}

TEST_F(ClientCoreTest, TheHighestCheckpointOrderAndALeaveAreRemembered) {
  welcome();
  receive(wire::CheckpointOrder{4});
  receive(wire::CheckpointOrder{3});
  EXPECT_EQ(core.checkpoint_ordered(), 4U);
  receive(wire::Leave{"stopping", 75});
  receive(wire::Leave{"stopping", 75});
  EXPECT_EQ(core.orders().leave_requested()->code, 75U);
  EXPECT_TRUE(next_is<wire::Leave>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, FetchingBeginsWithAHoldAndCarriesTheGeneration) {
  welcome();
  receive(wire::PhaseStart{3, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{2});
  ASSERT_TRUE(core.next_directive());
  EXPECT_TRUE(step(BeginPhase{3}).send.empty());
  const Wanted effects = step(SetHold{40});
  ASSERT_EQ(sent<wire::Fetch>(effects).size(), 1U);
  EXPECT_EQ(sent<wire::Fetch>(effects)[0].phase, 3U);
  EXPECT_EQ(effects.send[0].generation, Generation{2});
  EXPECT_EQ(effects.send[0].seq, 1U);
}

TEST_F(ClientCoreTest, ARecallIsAnsweredUnderItsNumber) {
  welcome();
  receive(wire::PhaseStart{3, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{2});
  ASSERT_TRUE(core.next_directive());
  step(BeginPhase{3});
  step(SetHold{40});
  receive(wire::Grants{3, wire::GrantStatus::kGranted, {{0, 0, 50, 0, 50, 1, false}}, 0},
          Generation{2}, 1);
  const Wanted effects = receive(wire::Recall{3, 10}, Generation{2}, 77);
  ASSERT_EQ(sent<wire::Recalled>(effects).size(), 1U);
  EXPECT_EQ(sent<wire::Recalled>(effects)[0].records, 40U);
  EXPECT_EQ(effects.send[0].seq, 77U);
}

TEST_F(ClientCoreTest, GrantsThatCannotBeEndTheWorkerWithTheReason) {
  welcome();
  step(BeginPhase{1});
  step(SetHold{10});
  receive(wire::Grants{1, wire::GrantStatus::kGranted, {{0, 0, 5, 9, 3, 1, false}}, 0},
          Generation{1}, 1);
  ASSERT_TRUE(core.refusal());
  EXPECT_EQ(core.refusal()->kind, ErrorKind::kCorrupt);
}

TEST_F(ClientCoreTest, BatchTimesAreAddedUpAndSentEveryFiftyMilliseconds) {
  welcome();
  const BatchTimes batch{10, milliseconds(1), milliseconds(4), milliseconds(2), true};
  EXPECT_EQ(sent<wire::Report>(step(batch)).size(), 1U);
  EXPECT_TRUE(step(batch).send.empty());
  BatchTimes skipped = batch;
  skipped.counts = false;
  EXPECT_TRUE(step(skipped).send.empty());
  EXPECT_EQ(core.deadline(), now + milliseconds(50));
  now += milliseconds(50);
  const auto reports = sent<wire::Report>(step(TimePassed{}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].batches, 1U);
  EXPECT_EQ(reports[0].samples, 10U);
  EXPECT_EQ(reports[0].compute_us, 4000U);
  EXPECT_EQ(reports[0].skipped, 1U);
  EXPECT_EQ(reports[0].samples_total, 30U);
}

TEST_F(ClientCoreTest, TheLatestProgressWinsAndOneThatIsDoneIsRepeatedUntilThePhaseAfter) {
  welcome();
  wire::Progress progress;
  progress.phase = 1;
  EXPECT_EQ(sent<wire::Progress>(step(progress)).size(), 1U);
  progress.samples = 10;
  EXPECT_TRUE(step(progress).send.empty());
  progress.samples = 20;
  EXPECT_TRUE(step(progress).send.empty());
  now += milliseconds(50);
  const auto latest = sent<wire::Progress>(step(TimePassed{}));
  ASSERT_EQ(latest.size(), 1U);
  EXPECT_EQ(latest[0].samples, 20U);

  progress.done = true;
  EXPECT_EQ(sent<wire::Progress>(step(progress)).size(), 1U);
  now += seconds(2);
  EXPECT_EQ(sent<wire::Progress>(step(TimePassed{})).size(), 1U);
  receive(wire::PhaseStart{2, wire::PhaseKind::kEval, Epoch{0}, 10, 0});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);
}

TEST_F(ClientCoreTest, AProgressThatWaitedIsOfTheGenerationThatItWasMadeIn) {
  welcome();
  receive(wire::Form{0, 2, 7, {}, {}}, Generation{1});
  ASSERT_TRUE(next_is<wire::Form>());
  wire::Progress progress;
  progress.phase = 1;
  step(progress);
  progress.place = 500;
  EXPECT_TRUE(step(progress).send.empty()) << "not that often";
  receive(wire::Form{0, 2, 8, {}, {}}, Generation{2});
  ASSERT_TRUE(next_is<wire::Form>());
  now += milliseconds(50);
  const Wanted effects = step(TimePassed{});
  ASSERT_EQ(sent<wire::Progress>(effects).size(), 1U);
  EXPECT_EQ(effects.send[0].generation, Generation{1});
}

TEST_F(ClientCoreTest, ByeFollowsUnsentMessagesAndCarriesTheTotals) {
  welcome();
  const BatchTimes batch{10, {}, milliseconds(4), {}, true};
  step(batch);
  step(batch);
  wire::TimeAccount account;
  account.compute = 1.5;
  step(account);
  core.set_table_sums({7, 2});
  const Wanted effects = step(wire::Bye{});
  ASSERT_EQ(effects.send.size(), 2U);
  EXPECT_EQ(std::get<wire::Report>(effects.send[0].body).table_sums.as_rows, 7U);
  const auto bye = sent<wire::Bye>(effects);
  ASSERT_EQ(bye.size(), 1U);
  EXPECT_EQ(bye[0].samples_total, 20U);
  EXPECT_EQ(bye[0].account.compute, 1.5);
  EXPECT_EQ(bye[0].table_sums.as_rows, 7U);
  EXPECT_EQ(bye[0].table_sums.as_whole, 2U);
}

TEST_F(ClientCoreTest, AHistoryOfStepsIsNotLostToTheNextProgress) {
  welcome();
  wire::Progress progress;
  progress.step = Step{1};
  EXPECT_EQ(sent<wire::Progress>(step(progress)).size(), 1U);
  progress.step = Step{2};
  progress.history = {Generation{1}, {{Step{1}, 2, 1, {0}, {8}}}};
  EXPECT_TRUE(sent<wire::Progress>(step(progress)).empty());
  progress.step = Step{3};
  progress.history = {};
  EXPECT_TRUE(sent<wire::Progress>(step(progress)).empty());
  now += seconds(1);
  const auto later = sent<wire::Progress>(step(TimePassed{}));
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].step, Step{3});
  ASSERT_EQ(later[0].history.runs.size(), 1U);
  EXPECT_EQ(later[0].history.runs[0].steps, 2U);
}

TEST_F(ClientCoreTest, StepsAreRecordedInTheirGenerationAlone) {
  welcome();
  wire::Grants grants{1, wire::GrantStatus::kWait, {}, 5};
  grants.recorded = Step{40};
  receive(grants, Generation{2});
  grants.recorded = Step{30};
  receive(grants, Generation{2});
  EXPECT_EQ(steps_recorded(Generation{2}), Step{40}) << "it never goes back";
  EXPECT_EQ(steps_recorded(Generation{3}), Step{0});
  grants.recorded = Step{35};
  receive(grants, Generation{3});  // begins after a step before
  grants.recorded = Step{90};
  receive(grants, Generation{2});
  EXPECT_EQ(steps_recorded(Generation{3}), Step{35});
  EXPECT_EQ(steps_recorded(Generation{2}), Step{0});
}

TEST_F(ClientCoreTest, TheNewestOfWhatIsInjectedCountsInAnyGeneration) {
  welcome();
  EXPECT_EQ(core.injected().number, 0U);
  receive(wire::Injected{2, "[]", 0, false}, Generation{3});
  receive(wire::Injected{1, "[1]", 0, false}, Generation{4});
  EXPECT_EQ(core.injected().number, 2U);
  EXPECT_EQ(core.injected().rules, "[]");
  receive(wire::Injected{3, "[3]", 0, false}, Generation{1});
  EXPECT_EQ(core.injected().rules, "[3]");
}

// ------------------------------------------------------- with parameter servers

TEST_F(ClientCoreTest, AJoinOfAWorkerOfServersIsAnsweredByThePhaseAndNotByTheRosterAlone) {
  welcome();
  step(wire::Join{});
  receive(wire::PsRoster{{"/a", "/b"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U) << "the phase may be lost";
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);
  const auto roster = core.next_directive();
  ASSERT_TRUE(roster && std::holds_alternative<wire::PsRoster>(roster->order));
  EXPECT_EQ(roster->generation, Generation{1});
  EXPECT_EQ(std::get<wire::PsRoster>(roster->order).servers.size(), 2U);
  EXPECT_TRUE(next_is<wire::PhaseStart>());
}

TEST_F(ClientCoreTest, APhaseWhoseRosterWasLostLeavesTheJoinStandingAndIsGivenOutAfterIt) {
  welcome();
  step(wire::Join{});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  EXPECT_FALSE(core.next_directive());
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
  for (int i = 0; i < 2; ++i)
    receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  for (int i = 0; i < 2; ++i) {
    receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  }
  EXPECT_TRUE(next_is<wire::PsRoster>());
  EXPECT_TRUE(next_is<wire::PhaseStart>());
  EXPECT_FALSE(core.next_directive()) << "repeated ones are given out once";
}

TEST_F(ClientCoreTest, TheNewestRosterOfTheGenerationSaysWhereServersAre) {
  welcome();
  EXPECT_FALSE(core.orders().servers(Generation{1}, 0));
  const auto roster = [](const char* at, std::uint64_t number) {
    return wire::PsRoster{{at}, SyncStrategy::kPsBsp, 0, {}, {}, {}, number};
  };
  receive(roster("/a", 3), Generation{1});
  receive(roster("/b", 5), Generation{1});
  receive(roster("/a", 4), Generation{1});
  EXPECT_EQ(core.orders().servers(Generation{1}, 0)->servers[0], "/b");
  EXPECT_TRUE(core.orders().servers(Generation{1}, 4));
  EXPECT_FALSE(core.orders().servers(Generation{1}, 5)) << "it is known";
  ASSERT_TRUE(next_is<wire::PsRoster>());
  EXPECT_FALSE(core.next_directive()) << "it is no order to begin again";
  receive(roster("/c", 1), Generation{2});
  EXPECT_EQ(core.orders().servers(Generation{2}, 0)->servers[0], "/c");
  receive(roster("/b", 6), Generation{1});
  EXPECT_FALSE(core.orders().servers(Generation{1}, 0)) << "that one is over";
}

TEST_F(ClientCoreTest, APhaseOfAGenerationWhoseServersAreNotKnownEndsTheOneBefore) {
  welcome();
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  ASSERT_TRUE(next_is<wire::PsRoster>());
  ASSERT_TRUE(next_is<wire::PhaseStart>());
  const wire::PhaseStart again{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0};
  EXPECT_EQ(receive(again, Generation{2}).abort, Generation{1});
  EXPECT_TRUE(next_is<wire::Abort>());
  EXPECT_FALSE(core.next_directive()) << "not the phase";
  step(wire::Join{});
  receive(again, Generation{2});
  now += seconds(2);
  const Wanted effects = step(TimePassed{});
  ASSERT_EQ(sent<wire::Join>(effects).size(), 1U);
  EXPECT_EQ(effects.send[0].generation, Generation{1}) << "it has not heard of the second";
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{2});
  receive(again, Generation{2});
  EXPECT_TRUE(next_is<wire::PsRoster>());
  EXPECT_TRUE(next_is<wire::PhaseStart>());
}

TEST_F(ClientCoreTest, AJoinOutlivesThePhasesOfTheServersThatWereLeft) {
  welcome();
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  ASSERT_TRUE(next_is<wire::PsRoster>());
  ASSERT_TRUE(next_is<wire::PhaseStart>());
  step(wire::Join{});
  receive(wire::PhaseStart{2, wire::PhaseKind::kEval, Epoch{0}, 10, 0}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, AWorkerThatCouldNotBeginIsToldOfTheServersOfThatGenerationOnceMore) {
  const wire::PhaseStart phase{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0};
  const auto admitted = [&] {
    receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
    receive(phase, Generation{1});
  };
  welcome();
  step(wire::Join{});
  admitted();
  wire::Join cannot;
  cannot.problem = "cannot reach parameter server s0 from here";
  for (int tries = 0; tries < 3; ++tries) {
    ASSERT_TRUE(next_is<wire::PsRoster>()) << "try " << tries;
    ASSERT_TRUE(next_is<wire::PhaseStart>());
    step(cannot);
    receive(phase, Generation{1});
    EXPECT_FALSE(core.next_directive()) << "the roster comes first";
    now += seconds(2);
    EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
    for (int i = 0; i < 2; ++i) admitted();  // both joins are answered
    now += seconds(2);
    EXPECT_EQ(said(step(TimePassed{})), 0U) << "it says once of each try that it failed";
  }
  ASSERT_TRUE(next_is<wire::PsRoster>());
  ASSERT_TRUE(next_is<wire::PhaseStart>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, ARosterThatAllAreToldAgainIsNoReasonToTryAgainBeforeThePhaseComesToo) {
  const wire::PhaseStart phase{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0};
  const auto hear_roster = [&](std::uint64_t number) {
    receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0, {}, {}, {}, number}, Generation{1});
  };
  welcome();
  hear_roster(1);
  receive(phase, Generation{1});
  ASSERT_TRUE(next_is<wire::PsRoster>());
  ASSERT_TRUE(next_is<wire::PhaseStart>());
  wire::Join cannot;
  cannot.problem = "cannot reach parameter server s0 from here";
  step(cannot);
  for (const std::uint64_t number : {1U, 2U, 2U}) {
    hear_roster(number);
    EXPECT_FALSE(core.next_directive()) << "nobody has admitted it again";
    now += seconds(2);
    EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U) << "it is not answered";
  }
  hear_roster(3);
  receive(phase, Generation{1});
  const auto again = core.next_directive();
  ASSERT_TRUE(again && std::holds_alternative<wire::PsRoster>(again->order));
  EXPECT_EQ(std::get<wire::PsRoster>(again->order).number, 3U) << "the newest";
  EXPECT_TRUE(next_is<wire::PhaseStart>());
  hear_roster(4);
  EXPECT_FALSE(core.next_directive()) << "it tries already";
}

TEST_F(ClientCoreTest, AProblemWithServersMakesNoOrdersOfTheNextGenerationComeTwice) {
  welcome();
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  ASSERT_TRUE(next_is<wire::PsRoster>());
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{2});
  wire::Join cannot;
  cannot.problem = "cannot reach parameter server s0 from here";
  step(cannot);
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{2});
  EXPECT_TRUE(next_is<wire::PsRoster>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, ARosterOfServersReleasesTheGenerationBeforeAndIsVoidOnceAborted) {
  welcome();
  receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{1});
  ASSERT_TRUE(next_is<wire::PsRoster>());
  EXPECT_EQ(receive(wire::PsRoster{{"/a"}, SyncStrategy::kPsBsp, 0}, Generation{2}).abort,
            Generation{1});
  receive(wire::Abort{"s0 was lost"}, Generation{2});
  EXPECT_TRUE(next_is<wire::Abort>());
  EXPECT_FALSE(core.next_directive());
}

TEST_F(ClientCoreTest, ALooseJoinIsAnsweredByAPhaseAlone) {
  welcome();
  wire::Join loose;
  loose.collective = false;
  step(loose);
  receive(wire::Abort{"w1 was lost"}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(sent<wire::Join>(step(TimePassed{})).size(), 1U);
  receive(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0}, Generation{1});
  now += seconds(2);
  EXPECT_EQ(said(step(TimePassed{})), 0U);
}

TEST_F(ClientCoreTest, HopsAreCountedAddedUpAndTheLeastIsKept) {
  welcome();
  BatchTimes batch{10, {}, milliseconds(4), {}, true};
  batch.hop = milliseconds(3);
  (void)step(batch);
  for (const int ms : {5, 2}) {
    batch.hop = milliseconds(ms);
    (void)step(batch);
  }
  batch.hop.reset();
  now += ClientCore::kReportEvery;
  const auto report = sent<wire::Report>(step(batch));
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].hops, 2U) << "the first went with the first report";
  EXPECT_EQ(report[0].hop_us, 7000U);
  EXPECT_EQ(report[0].hop_least_us, 2000U);
}

TEST_F(ClientCoreTest, EachReportNamesTheShareOfTimeThatItMayRun) {
  welcome();
  const BatchTimes batch{10, {}, milliseconds(4), {}, true};
  const auto said = [&] {
    now += ClientCore::kReportEvery;
    return sent<wire::Report>(step(batch)).at(0).throttle_permille;
  };
  EXPECT_EQ(said(), 0U);
  core.set_throttle(0.33);
  EXPECT_EQ(said(), 330U);
  EXPECT_EQ(said(), 330U);
  core.set_throttle(1);
  EXPECT_EQ(said(), 0U);
}

}  // namespace
}  // namespace antdt::client
