// Each invariant fires when something is broken on purpose; an invariant that never fires proves
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/run.h"
#include "tests/sanitized.h"

namespace antdt::sim {
namespace {

using ::testing::IsEmpty;

using Invariants = std::set<std::string>;

// The invariants that the runs with seeds 1 to `seeds` broke; the last run is the first that broke
// one of `expected`.
Invariants broken(Sabotage sabotage, const char* faults, std::uint64_t seeds,
                  const Invariants& expected = {}, Sync sync = Sync::kAllReduce,
                  Pinning pinning = Pinning::kNever) {
  Invariants found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Options options;
    options.seed = seed;
    options.sabotage = sabotage;
    options.sync = sync;
    options.pinning = pinning;
    options.weaker_delivery = sabotage == Sabotage::kSayLess;  // it is about nothing else
    set_faults(faults, options.faults);
    const RunReport report = run(options);
    if (report.violation) found.insert(report.violation->invariant);
    if (report.violation && expected.contains(report.violation->invariant)) break;
  }
  return found;
}

// One of the runs breaks one of `expected`. The search is for the build without a sanitizer: with
// one, the runs without a sabotage go through the same code.
void expect_seen(Sabotage sabotage, const char* faults, std::uint64_t seeds,
                 const Invariants& expected, Sync sync = Sync::kAllReduce,
                 Pinning pinning = Pinning::kNever) {
  if (kSanitized) GTEST_SKIP() << "a search of " << seeds << " runs";
  const Invariants found = broken(sabotage, faults, seeds, expected, sync, pinning);
  EXPECT_TRUE(std::ranges::any_of(found, [&](const auto& i) { return expected.contains(i); }))
      << "seen was " << ::testing::PrintToString(found);
}

TEST(InvariantsTest, NoInvariantFiresWithoutASabotage) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(5, 1)), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(20, 2)), IsEmpty());
}

TEST(InvariantsTest, ARecordOfASharedStepIsComputedOnce) {
  expect_seen(Sabotage::kComputeTwice, "none", 20, {"exactly once", "model and ledger"});
  expect_seen(Sabotage::kComputeTwice, "workers", 20, {"exactly once", "model and ledger"});
}

TEST(InvariantsTest, AHostWithOtherDataTrainsNothing) {
  for (const Sync sync : {Sync::kAllReduce, Sync::kServers}) {
    EXPECT_THAT(broken(Sabotage::kNone, "data", all_or_some(20, 2), {}, sync), IsEmpty());
    expect_seen(Sabotage::kLieAboutData, "data", 5, {"other data"}, sync);
  }
}

// A disk that takes 14 s, while the daemon waits 10 s.
constexpr Duration kSlow = std::chrono::seconds(14);
// A disk that is so fast that there are checkpoints between the deaths of workers.
constexpr Duration kFast = std::chrono::milliseconds(100);

RunReport run_on_a_slow_disk(std::uint64_t seed, Sabotage sabotage, const char* faults,
                             std::uint32_t workers, Duration write_time) {
  Options options;
  options.seed = seed;
  options.sabotage = sabotage;
  options.write_time = write_time;
  options.read_time = kSlow;
  options.workers = workers;
  options.epochs = all_or_some(30U, 10U);  // so that there are checkpoints before the last
  options.faults_stop = std::chrono::seconds(150);
  options.end_within = std::chrono::seconds(2000);
  set_faults(faults, options.faults);
  return run(options);
}

TEST(InvariantsTest, ASlowDiskIsWaitedForWhileItIsWrittenAndRead) {
  for (std::uint64_t seed = 1; seed <= all_or_some(5, 1); ++seed) {
    const RunReport few = run_on_a_slow_disk(seed, Sabotage::kNone, "workers", 3, kSlow);
    EXPECT_FALSE(few.violation) << seed << ": " << few.violation->detail;
    if (kSanitized) return;  // it writes slowly and reads slowly
    const RunReport calm = run_on_a_slow_disk(seed, Sabotage::kNone, "none", 0, kSlow);
    EXPECT_FALSE(calm.violation) << seed << ": " << calm.violation->detail;
    // With one worker, the checkpoint is read whenever the worker dies.
    const RunReport alone = run_on_a_slow_disk(seed, Sabotage::kNone, "workers", 1, kFast);
    EXPECT_FALSE(alone.violation) << seed << ": " << alone.violation->detail;
  }
}

TEST(InvariantsTest, EndingAWorkerThatReadsASlowDiskIsDetected) {
  if (kSanitized) GTEST_SKIP() << "a search of 40 runs";
  Invariants found;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RunReport report = run_on_a_slow_disk(seed, Sabotage::kSayNoBytes, "workers", 1, kFast);
    if (report.violation) found.insert(report.violation->invariant);
    if (found.contains("patience")) break;
  }
  EXPECT_TRUE(found.contains("patience")) << ::testing::PrintToString(found);
}

TEST(InvariantsTest, RecordsThatAreGrantedTwiceHaveTwoHolders) {
  expect_seen(Sabotage::kGrantTwice, "none", 5, {"one hand"});
}

TEST(InvariantsTest, AStepThatIsAppliedTwiceTrainsItsRecordsTwice) {
  expect_seen(Sabotage::kApplyTwice, "none", 2, {"exactly once"});
}

TEST(InvariantsTest, AnEndBeforeTheEndIsSeen) {
  expect_seen(Sabotage::kEndEarly, "none", 20, {"end"});
}

TEST(InvariantsTest, AMemberThatGoesOnFromAnOldStateLacksWhatIsCommitted) {
  expect_seen(Sabotage::kKeepOldState, "workers", 40, {"model and ledger"});
}

TEST(InvariantsTest, RecordsCalledStableTooEarlyAreInNoModelWhenTheirTrainerDies) {
  expect_seen(Sabotage::kCommitEarly, "workers", 100, {"model and ledger"});
}

TEST(InvariantsTest, AMessageSentBeforeItIsDurableIsForgotten) {
  expect_seen(Sabotage::kForgetTurn, "daemon", 200,
              {"one hand", "a current member is not refused", "model and ledger", "exactly once"});
}

TEST(InvariantsTest, AJobWhoseDaemonHearsNobodyDoesNotEnd) {
  Options options;
  options.sabotage = Sabotage::kDeaf;
  options.seed = 1;
  options.end_within = std::chrono::seconds(60);
  const RunReport report = run(options);
  ASSERT_TRUE(report.violation);
  EXPECT_EQ(report.violation->invariant, "it ends");
}

TEST(InvariantsTest, CommittedThatGoesBackIsSeen) {
  expect_seen(Sabotage::kLyingDisk, "daemon", 20, {"monotone"});
}

TEST(InvariantsTest, AnOlderIncarnationThatStillWritesIsSeen) {
  expect_seen(
      Sabotage::kNoFence, "daemon", 100,
      {"a replay comes to the same state", "monotone", "the journal can be replayed", "one hand"});
}

TEST(InvariantsTest, AnOlderIncarnationThatWritesWhenTheStoreAnswersAgainIsSeen) {
  expect_seen(
      Sabotage::kNoFence, "store", 200,
      {"a replay comes to the same state", "monotone", "the journal can be replayed", "one hand"});
}

TEST(InvariantsTest, GrantingASkippedRecordIsDetected) {
  expect_seen(Sabotage::kForgetSkip, "operators", 60, {"skipped"});
}

TEST(InvariantsTest, RecordsThatNobodyAskedToSkipAreMissedInTheModel) {
  expect_seen(Sabotage::kSkipUnasked, "operators", 60, {"exactly once", "accounts"});
}

TEST(InvariantsTest, WhatAProgramSkipsIsAccountedExactlyWhileWorkersDie) {
  EXPECT_THAT(broken(Sabotage::kNone, "programs", all_or_some(30, 2)), IsEmpty());
}

TEST(InvariantsTest, ASkipThatIsNotReportedIsSeen) {
  expect_seen(Sabotage::kHideSkip, "programs", 5, {"program skips"});
}

TEST(InvariantsTest, AStepThatCompletesBeforeItsSkipsAreDurableIsSeen) {
  expect_seen(Sabotage::kHurrySkip, "programs", 100, {"program skips"});
}

TEST(InvariantsTest, AStepBehindTheEndOfTheTrainingIsSeen) {
  expect_seen(Sabotage::kEndLate, "programs", 20, {"end of training"});
}

TEST(InvariantsTest, AJobThatStaysPausedDoesNotEnd) {
  expect_seen(Sabotage::kStayPaused, "disks", 10, {"it ends"});
}

TEST(InvariantsTest, ACheckpointOfAnotherStepThanItsLedgerIsSeen) {
  expect_seen(Sabotage::kSaveLate, "none", 10, {"saved"});
}

// ----------------------------------------------------------- replicas that differ

TEST(InvariantsTest, NoInvariantFiresWhereRecordsArePinnedWithoutASabotage) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(10, 1), {}, Sync::kAny, Pinning::kAlways),
              IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(40, 2), {}, Sync::kAny, Pinning::kAlways),
              IsEmpty());
}

TEST(InvariantsTest, ARecordThatLeavesItsDomainIsSeen) {
  for (const Sync sync : {Sync::kAllReduce, Sync::kServers}) {
    expect_seen(Sabotage::kWrongDomain, "none", 5, {"pinned"}, sync, Pinning::kAlways);
  }
}

TEST(InvariantsTest, NoInvariantFiresAmongMembersThatMixWithoutASabotage) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(10, 1), {}, Sync::kDsSync), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "workers", all_or_some(30, 2), {}, Sync::kDsSync), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "programs", all_or_some(10, 1), {}, Sync::kDsSync),
              IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(30, 2), {}, Sync::kDsSync), IsEmpty());
}

TEST(InvariantsTest, AnUpdateThatIsAppliedTwiceIsSeenInAReplica) {
  expect_seen(Sabotage::kApplyTwice, "none", 2, {"exactly once"}, Sync::kDsSync);
}

TEST(InvariantsTest, RecordsCommittedBeforeAllReplicasHaveThemAreInNoModelWhenTheirTrainerDies) {
  expect_seen(Sabotage::kCommitUnmixed, "workers", 100, {"model and ledger"}, Sync::kDsSync);
}

TEST(InvariantsTest, ACheckpointOfAReplicaThatDiffersFromOthersLacksRecords) {
  expect_seen(Sabotage::kSaveUnmixed, "none", 20, {"saved", "exactly once"}, Sync::kDsSync);
}

// The job refuses it: its members are ready at different steps.
TEST(InvariantsTest, AReplicaThatIsBehindAndTakenForTheModelIsRefused) {
  expect_seen(Sabotage::kHoldBehind, "workers", 40, {"it ends well"}, Sync::kDsSync);
}

TEST(InvariantsTest, RecordsThatWereLostWithAReplicaAndCommittedAreMissedInTheModel) {
  expect_seen(Sabotage::kMergeAll, "workers", 100, {"model and ledger"}, Sync::kDsSync);
}

TEST(InvariantsTest, RecordsThatAreGivenBackAndInAReplicaAreSeen) {
  expect_seen(Sabotage::kMergeLess, "workers", 20, {"model and ledger"}, Sync::kDsSync);
}

// ----------------------------------------------------------- domains

TEST(InvariantsTest, NoInvariantFiresAmongDomainsWithoutASabotage) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(10, 1), {}, Sync::kGaia), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "workers", all_or_some(30, 2), {}, Sync::kGaia), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "programs", all_or_some(10, 1), {}, Sync::kGaia), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(30, 2), {}, Sync::kGaia), IsEmpty());
}

TEST(InvariantsTest, ADomainsUpdateThatIsAppliedTwiceIsSeen) {
  expect_seen(Sabotage::kApplyTwice, "none", 5, {"exactly once"}, Sync::kGaia);
}

TEST(InvariantsTest, PartsOfALostDomainThatAreNotWithdrawnAreSeen) {
  expect_seen(Sabotage::kKeepParts, "workers", 40, {"entire"}, Sync::kGaia);
}

TEST(InvariantsTest, RecordsCommittedBeforeAWholeExchangeAreInNoModelWhenTheirDomainDies) {
  expect_seen(Sabotage::kCommitUnmixed, "workers", 100, {"model and ledger"}, Sync::kGaia);
}

TEST(InvariantsTest, RecordsThatSurvivorsHaveInPartAndCallMergedAreMissedInTheModel) {
  expect_seen(Sabotage::kMergeAll, "workers", 100, {"model and ledger"}, Sync::kGaia);
}

TEST(InvariantsTest, ADroppedStepThatKeepsWhatWasExchangedIsSeen) {
  expect_seen(Sabotage::kKeepExchange, "workers", 100,
              {"entire", "exactly once", "model and ledger", "equal replicas"}, Sync::kGaia);
}

TEST(InvariantsTest, ACheckpointOfOneDomainsReplicaLacksRecordsOfOthers) {
  expect_seen(Sabotage::kSaveUnmixed, "none", 20, {"saved", "exactly once", "entire"}, Sync::kGaia);
}

TEST(InvariantsTest, ADomainWithAThresholdOfItsOwnIsSeen) {
  expect_seen(Sabotage::kOwnThreshold, "none", 40, {"one threshold"}, Sync::kGaia);
}

TEST(InvariantsTest, AThresholdThatTheNextIncarnationForgetsIsSeen) {
  expect_seen(Sabotage::kForgetThreshold, "all", 40, {"a replay comes to the same state"},
              Sync::kGaia);
}

// ----------------------------------------------------------- parameter servers

TEST(InvariantsTest, NoInvariantFiresAroundServersWithoutASabotage) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(10, 1), {}, Sync::kServers), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(30, 2), {}, Sync::kServers), IsEmpty());
}

TEST(InvariantsTest, RecordsThatAreGrantedTwiceArePushedTwice) {
  expect_seen(Sabotage::kGrantTwice, "none", 10, {"exactly once"}, Sync::kServers);
}

TEST(InvariantsTest, AGradientThatIsCountedTwiceIsInTheCheckpoint) {
  expect_seen(Sabotage::kApplyTwice, "none", 5, {"saved"}, Sync::kServers);
}

TEST(InvariantsTest, ReplicasAreExchangedOnceUnderAllFaults) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(30, 2), {}, Sync::kShadow), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(60, 3), {}, Sync::kShadow), IsEmpty());
}

TEST(InvariantsTest, AnExchangeThatMovesTheCentreTwiceIsSeen) {
  expect_seen(Sabotage::kExchangeTwice, "none", 10, {"exchange"}, Sync::kShadow);
}

TEST(InvariantsTest, AnExchangeThatIsMissingAtTheEndOfAPhaseIsSeen) {
  expect_seen(Sabotage::kDropLastExchange, "none", 10, {"exchange"}, Sync::kShadow);
}

TEST(InvariantsTest, AReplicaOfALostWorkerThatStaysInTheMeanIsSeen) {
  expect_seen(Sabotage::kKeepReplica, "workers", 30, {"mean"}, Sync::kShadow);
}

TEST(InvariantsTest, ACentreThatMovesFromWhereItWasBeforeIsSeen) {
  expect_seen(Sabotage::kStaleCentre, "none", 10, {"mean"}, Sync::kShadow);
}

TEST(InvariantsTest, AReplicaThatIsNotTheOneThatWasMadeIsSeenInTheMean) {
  expect_seen(Sabotage::kExchangeTwice, "none", 10, {"mean"}, Sync::kShadow);
  expect_seen(Sabotage::kDropLastExchange, "none", 10, {"mean"}, Sync::kShadow);
}

TEST(InvariantsTest, RowsOnServersFollowTheStepsOfMembersUnderAllFaults) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", all_or_some(20, 1), {}, Sync::kHybrid), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "store", all_or_some(20, 2), {}, Sync::kHybrid), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", all_or_some(40, 4), {}, Sync::kHybrid), IsEmpty());
}

TEST(InvariantsTest, AMemberThatGathersWithoutItsPartOnTheServersIsSeen) {
  expect_seen(Sabotage::kGatherUnstaged, "none", 5, {"rows as the replica"}, Sync::kHybrid);
}

TEST(InvariantsTest, AReplicaThatAppliesAStepTwiceIsNotThatOfItsRows) {
  expect_seen(Sabotage::kApplyTwice, "none", 5, {"rows as the replica", "exactly once"},
              Sync::kHybrid);
}

TEST(InvariantsTest, APlaceThatIsCommittedBeforeItsHomeDecidedIsNotInTheModel) {
  expect_seen(Sabotage::kCommitEarly, "workers", 30, {"model and ledger", "exactly once"},
              Sync::kServers);
}

TEST(InvariantsTest, AGroupThatDoesNotReadItsCheckpointLacksWhatIsCommitted) {
  expect_seen(Sabotage::kKeepOldState, "workers", 30, {"saved"}, Sync::kServers);
}

TEST(InvariantsTest, AnUnreportedDecisionOfAHomeIsTrainedAgain) {
  expect_seen(Sabotage::kSayLess, "workers", 300, {"promise"}, Sync::kServers);
}

TEST(InvariantsTest, APushBehindRecordsThatTheLedgerStillCountsIsSeen) {
  expect_seen(Sabotage::kPushTooSoon, "none", 100, {"model and ledger", "exactly once", "end"},
              Sync::kServers);
}

TEST(InvariantsTest, AnEndBeforeTheEndIsSeenAroundServers) {
  expect_seen(Sabotage::kEndEarly, "none", 20, {"end"}, Sync::kServers);
}

TEST(InvariantsTest, AJournalThatForgetsIsSeenAroundServers) {
  expect_seen(Sabotage::kLyingDisk, "daemon", 60,
              {"exactly once", "model and ledger", "monotone", "saved", "it ends"}, Sync::kServers);
}

}  // namespace
}  // namespace antdt::sim
