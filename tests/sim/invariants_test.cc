// Each invariant fires when something is broken on purpose: what never fires
// proves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/run.h"

namespace antdt::sim {
namespace {

using testing::Contains;
using testing::IsEmpty;

// The invariants that some of `seeds` runs broke.
std::set<std::string> broken(Sabotage sabotage, const char* faults, std::uint64_t seeds) {
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Options options;
    options.seed = seed;
    options.sabotage = sabotage;
    set_faults(faults, options.faults);
    const RunReport report = run(options);
    if (report.violation) found.insert(report.violation->invariant);
  }
  return found;
}

TEST(InvariantsTest, NothingIsBrokenWhereNothingIs) {
  EXPECT_THAT(broken(Sabotage::kNone, "none", 5), IsEmpty());
  EXPECT_THAT(broken(Sabotage::kNone, "all", 20), IsEmpty());
}

TEST(InvariantsTest, RecordsThatAreGrantedTwiceAreInTwoHands) {
  EXPECT_THAT(broken(Sabotage::kGrantTwice, "none", 5), Contains("one hand"));
}

TEST(InvariantsTest, AStepThatIsAppliedTwiceTrainsItsRecordsTwice) {
  EXPECT_THAT(broken(Sabotage::kApplyTwice, "none", 2), Contains("exactly once"));
}

TEST(InvariantsTest, AnEndBeforeTheEndIsSeen) {
  EXPECT_THAT(broken(Sabotage::kEndEarly, "none", 20), Contains("end"));
}

TEST(InvariantsTest, AMemberThatGoesOnFromAnOldStateLacksWhatIsCommitted) {
  EXPECT_THAT(broken(Sabotage::kKeepOldState, "workers", 40), Contains("model and ledger"));
}

TEST(InvariantsTest, WhatIsCalledStableTooEarlyIsInNoModelWhenItsTrainerDies) {
  EXPECT_THAT(broken(Sabotage::kCommitEarly, "workers", 100), Contains("model and ledger"));
}

TEST(InvariantsTest, WhatIsSentBeforeItIsDurableIsForgotten) {
  EXPECT_THAT(broken(Sabotage::kForgetTurn, "daemon", 200),
              testing::AnyOf(Contains("one hand"), Contains("a current member is not refused"),
                             Contains("model and ledger"), Contains("exactly once")));
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
  EXPECT_THAT(broken(Sabotage::kLyingDisk, "daemon", 20), Contains("monotone"));
}

TEST(InvariantsTest, AnOlderIncarnationThatStillWritesIsSeen) {
  EXPECT_THAT(broken(Sabotage::kNoFence, "daemon", 100),
              testing::AnyOf(Contains("a replay comes to the same state"), Contains("monotone"),
                             Contains("the journal can be replayed"), Contains("one hand")));
}

TEST(InvariantsTest, SkippedRecordsThatAreHandedOutAreSeen) {
  EXPECT_THAT(broken(Sabotage::kForgetSkip, "operators", 60), Contains("skipped"));
}

TEST(InvariantsTest, RecordsThatNobodyAskedToSkipAreMissedInTheModel) {
  EXPECT_THAT(broken(Sabotage::kSkipUnasked, "operators", 60),
              testing::AnyOf(Contains("exactly once"), Contains("accounts")));
}

TEST(InvariantsTest, AJobThatStaysPausedDoesNotEnd) {
  EXPECT_THAT(broken(Sabotage::kStayPaused, "disks", 10), Contains("it ends"));
}

TEST(InvariantsTest, ACheckpointOfAnotherStepThanItsLedgerIsSeen) {
  EXPECT_THAT(broken(Sabotage::kSaveLate, "none", 10), Contains("saved"));
}

}  // namespace
}  // namespace antdt::sim
