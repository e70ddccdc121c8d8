#include "shard_server/accounts/accounts.h"

#include <gtest/gtest.h>

#include "accounts_testing.h"
#include "shard_server/accounts/audit.h"

namespace antdt::shard_server {
namespace {

TEST_F(AccountsTest, AnEpochCommittedOnceIsKept) {
  begin();
  apply(answered(0, {{{0, 100}, 0}}));
  EXPECT_EQ(audit(accounts_).exit_code, 5);
  EXPECT_EQ(accounts_.epochs()[0].remaining, 100U);
  apply(answered(100, {}));
  EXPECT_EQ(audit(accounts_).exit_code, 5);
  apply(ledger::JobFinished{});
  EXPECT_EQ(audit(accounts_).exit_code, 0);
  EXPECT_EQ(accounts_.epochs()[0].once, 100U);
}

TEST_F(AccountsTest, ALedgerThatGrantsARecordTwiceIsFoundOut) {
  begin();
  apply(answered(0, {{{0, 100}, 0}, {{40, 45}, 0}}));
  apply(answered(105, {}));
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.once, 95U);
  EXPECT_EQ(account.repeated, 5U);
  EXPECT_EQ(audit(accounts_).exit_code, 1);
}

TEST_F(AccountsTest, EachEpochHasTheRecordsWithWhichItWasOpened) {
  begin(3);
  apply(answered(0, {{{0, 100}, 0}}));
  apply(answered(100, {}));
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}, 130});
  apply(answered(0, {{{0, 130}, 0}}));
  apply(answered(130, {}));
  const auto again = Accounts::restore(accounts_.image());
  ASSERT_TRUE(again) << again.error().message;
  for (const Accounts& accounts : {accounts_, *again}) {
    EXPECT_EQ(accounts.epochs()[1].records, 130U);
    EXPECT_EQ(accounts.epochs()[1].once, 130U);
    EXPECT_EQ(accounts.records_before(1, 130), 100U);
    EXPECT_EQ(accounts.records_before(3, 130), 360U);
  }
}

TEST_F(AccountsTest, AnEpochClosedWithARecordMissingHasLostIt) {
  begin(2);
  apply(answered(0, {{{0, 99}, 0}}));
  apply(answered(99, {}));
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}});
  EXPECT_EQ(accounts_.epochs()[0].lost, 1U);
  EXPECT_EQ(accounts_.epochs()[1].remaining, 100U);
  EXPECT_EQ(audit(accounts_).exit_code, 1);
}

TEST_F(AccountsTest, SkippedRecordsAreNeitherLostNorCounted) {
  begin();
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::SkipDeclared{1, {45, 100}, "bad"});
  apply(answered(50, {}));
  apply(ledger::JobFinished{});
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.once, 50U);
  EXPECT_EQ(account.skipped, 50U);
  EXPECT_EQ(account.lost, 0U);
  EXPECT_EQ(audit(accounts_).exit_code, 0);
}

TEST_F(AccountsTest, TheRestOfAnEpochInWhichTheTrainingEndsIsSkipped) {
  begin(3);
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::ProgressReported{kMember, {}, 1, 20});
  apply(ledger::PhaseCut{1, "it is good enough"});
  // The last steps become known when the next generation settles.
  apply(ledger::GenerationSettled{Generation{2}, {{kMember, 30, false}}, {kMember}});
  apply(ledger::JobFinished{});
  const auto again = Accounts::restore(accounts_.image());
  ASSERT_TRUE(again) << again.error().message;
  for (const Accounts& accounts : {accounts_, *again}) {
    ASSERT_EQ(accounts.epochs().size(), 1U);
    const EpochAccount account = accounts.epochs()[0];
    EXPECT_EQ(account.once, 30U);
    EXPECT_EQ(account.skipped, 70U);
    EXPECT_EQ(account.lost, 0U);
    EXPECT_EQ(account.skipped_by_program.at(0).text, "the training was ended: it is good enough");
    EXPECT_EQ(account.skipped_by_program.at(0).records, 70U);
    EXPECT_EQ(audit(accounts).exit_code, 0);
    EXPECT_EQ(accounts.cut(0), "it is good enough");
    EXPECT_EQ(accounts.cut(1), "");
  }
}

TEST_F(AccountsTest, AnEpochOfWhichNothingWasTrainedWhenTheTrainingEndsIsNone) {
  begin(3);
  apply(answered(0, {{{0, 100}, 0}}));
  apply(answered(100, {}));
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}, 100});
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::PhaseCut{2, "it is good enough"});
  apply(ledger::GenerationSettled{Generation{2}, {{kMember, 0, false}}, {kMember}});
  apply(ledger::JobFinished{});
  ASSERT_EQ(accounts_.epochs().size(), 1U);
  EXPECT_EQ(accounts_.epochs()[0].once, 100U);
  EXPECT_EQ(audit(accounts_).exit_code, 0);
}

TEST_F(AccountsTest, RecordsThatALostMemberHeldAreNotCounted) {
  begin();
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::ProgressReported{kMember, {}, 1, 20});
  apply(ledger::MemberLost{kMember});
  EXPECT_EQ(accounts_.epochs()[0].once, 20U);
}

TEST_F(AccountsTest, ASettledGenerationCommitsThePlacesOfTheOldOne) {
  begin();
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::GenerationSettled{Generation{2}, {{kMember, 30, false}}, {kMember}});
  EXPECT_EQ(accounts_.epochs()[0].once, 30U);
}

TEST_F(AccountsTest, RecordsThatWereGivenBackAreNotCounted) {
  begin();
  apply(answered(0, {{{0, 20}, 0}, {{60, 80}, 0}}));
  apply(ledger::RecallSettled{kMember, {}, 1, 1, 25});
  apply(answered(25, {{{65, 70}, 0}}));
  apply(answered(30, {}));
  EXPECT_EQ(accounts_.epochs()[0].once, 30U);
  EXPECT_EQ(accounts_.epochs()[0].repeated, 0U);
}

TEST_F(AccountsTest, RecordsThatCameTooLateAreCountedWhereTheyAreTrained) {
  begin();
  apply(answered(0, {{{0, 20}, 0}, {{60, 80}, 0}}));
  apply(ledger::LateReturned{answered(10, {}), 15, false});  // 10:20 and 60:65
  apply(answered(25, {}));
  EXPECT_EQ(accounts_.epochs()[0].once, 25U);
  apply(answered(25, {{{10, 20}, 0}, {{60, 65}, 0}}));
  apply(answered(40, {}));
  EXPECT_EQ(accounts_.epochs()[0].once, 40U);
  EXPECT_EQ(accounts_.epochs()[0].repeated, 0U);
}

TEST_F(AccountsTest, MoreThanWasGrantedCannotComeTooLate) {
  begin();
  apply(answered(0, {{{0, 20}, 0}}));
  const auto late =
      accounts_.apply(encode_record(ledger::LateReturned{answered(10, {}), 11, false}));
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("gave back 1 records more than it was granted"),
            std::string::npos);
}

TEST_F(AccountsTest, CommittingMoreThanWasGrantedContradictsTheJournal) {
  begin();
  apply(answered(0, {{{0, 20}, 0}}));
  EXPECT_FALSE(accounts_.apply(encode_record(ledger::ProgressReported{kMember, {}, 1, 21})));
}

TEST_F(AccountsTest, AProgramWithoutTheLedgerIsUnaccounted) {
  begin(2, false);
  EXPECT_EQ(audit(accounts_).exit_code, 5);
  apply(ledger::JobFinished{});
  EXPECT_EQ(audit(accounts_).exit_code, 6);
  EXPECT_EQ(accounts_.epochs().size(), 2U);
  EXPECT_EQ(accounts_.epochs()[1].unaccounted, 100U);
}

TEST_F(AccountsTest, MoreEpochsThanAJobCanHaveAreNotBelieved) {
  EXPECT_TRUE(accounts_.apply(encode_record(ledger::JobDeclared{ledger::kMostEpochs, 1, false})));
  EXPECT_FALSE(
      accounts_.apply(encode_record(ledger::JobDeclared{ledger::kMostEpochs + 1, 1, false})));
}

TEST_F(AccountsTest, ItsImageIsItself) {
  begin(2);
  apply(answered(0, {{{0, 20}, 0}, {{60, 80}, 0}}));
  apply(answered(30, {{{10, 12}, 0}}));
  apply(ledger::SkipDeclared{1, {90, 95}, "bad"});
  const std::string image = accounts_.image();
  auto restored = Accounts::restore(image);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->image(), image);
  EXPECT_EQ(restored->epochs()[0].once, 30U);
  for (std::size_t size = 0; size < image.size(); ++size) {
    EXPECT_FALSE(Accounts::restore(image.substr(0, size))) << size;
  }
}

// One of two servers was lost: 30 records are committed, 10 more may be in the other server's rows,
// and the lost server's rows come from a checkpoint that has 20.
class PromiseTest : public AccountsTest {
 protected:
  void lose_a_server(Delivery delivery) {
    begin(2);
    apply(ledger::DeliveryChosen{delivery});
    apply(answered(0, {{{0, 60}, 0}}));
    apply(ledger::ProgressReported{kMember, {}, 1, 20});
    const Accounts checkpoint = accounts_;
    apply(ledger::ProgressReported{kMember, {}, 1, 30});
    auto then = accounts_.in_part(checkpoint, {{kMember, 40, false}});
    ASSERT_TRUE(then) << then.error().message;
    apply(ledger::LedgerRewound{Lineage{2}, "", then->image()});
  }
  void train(Interval rest) {
    apply(ledger::GenerationSettled{Generation{2}, {}, {kMember}});
    apply(answered(0, {{rest, 0}}));
    apply(answered(rest.size(), {}));
  }
};

TEST_F(PromiseTest, AtLeastOnceRepeatsWhatTheOtherServersHaveAlready) {
  lose_a_server(Delivery::kAtLeastOnce);
  EXPECT_EQ(accounts_.epochs()[0].once, 20U);
  EXPECT_EQ(accounts_.epochs()[0].remaining, 80U);
  train({20, 100});
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.once, 80U);
  EXPECT_EQ(account.repeated, 20U) << "10 for certain, 10 perhaps";
  EXPECT_EQ(account.lost, 0U);
  apply(ledger::JobFinished{});
  EXPECT_EQ(audit(accounts_).exit_code, 0);
  EXPECT_NE(audit_table(audit(accounts_)).find("kept: every record was trained at least once"),
            std::string::npos);
}

TEST_F(PromiseTest, AtMostOnceLosesWhatOnlyTheLostServerHad) {
  lose_a_server(Delivery::kAtMostOnce);
  EXPECT_EQ(accounts_.epochs()[0].lost, 20U);
  EXPECT_EQ(accounts_.epochs()[0].remaining, 60U) << "what may be in the model is not trained";
  train({40, 100});
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.once, 80U);
  EXPECT_EQ(account.repeated, 0U);
  EXPECT_EQ(account.lost, 20U);
  apply(ledger::JobFinished{});
  EXPECT_EQ(audit(accounts_).exit_code, 0);
  EXPECT_NE(audit_table(audit(accounts_)).find("kept: every record was trained at most once"),
            std::string::npos);
}

TEST_F(PromiseTest, AtMostOnceLosesWhatCameTooLate) {
  begin();
  apply(ledger::DeliveryChosen{Delivery::kAtMostOnce});
  apply(answered(0, {{{0, 100}, 0}}));
  apply(ledger::LateReturned{answered(30, {}), 20, true});
  EXPECT_EQ(accounts_.epochs()[0].lost, 20U);
  apply(answered(80, {}));
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.once, 80U);
  EXPECT_EQ(account.lost, 20U);
  EXPECT_EQ(account.remaining, 0U);
  apply(ledger::JobFinished{});
  EXPECT_EQ(audit(accounts_).exit_code, 0);
}

TEST_F(PromiseTest, NeitherPromiseAllowsTheLossesOfTheOther) {
  begin();
  apply(ledger::DeliveryChosen{Delivery::kAtMostOnce});
  apply(answered(0, {{{0, 100}, 0}, {{40, 45}, 0}}));
  apply(answered(105, {}));
  EXPECT_EQ(audit(accounts_).exit_code, 1);
  accounts_ = {};
  begin(2);
  apply(ledger::DeliveryChosen{Delivery::kAtLeastOnce});
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}});
  EXPECT_EQ(audit(accounts_).exit_code, 1);
}

TEST_F(PromiseTest, ALaterEpochThatWasBegunIsRepeatedWhenItComesAgain) {
  lose_a_server(Delivery::kAtLeastOnce);
  train({20, 100});
  const Accounts checkpoint = accounts_;
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}});
  apply(answered(0, {{{0, 50}, 0}}));
  apply(ledger::ProgressReported{kMember, {}, 2, 5});
  const auto then = accounts_.in_part(checkpoint, {});
  ASSERT_TRUE(then) << then.error().message;
  apply(ledger::LedgerRewound{Lineage{3}, "", then->image()});
  EXPECT_EQ(accounts_.epochs().size(), 1U) << "it has not begun again";
  EXPECT_EQ(accounts_.partial(1).size(), 5U);
  apply(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}});
  train({0, 100});
  EXPECT_EQ(accounts_.epochs()[1].repeated, 5U);
}

TEST_F(PromiseTest, ItsImageHasThePromiseAndWhatIsThereInPart) {
  for (const Delivery delivery : {Delivery::kAtLeastOnce, Delivery::kAtMostOnce}) {
    accounts_ = {};
    lose_a_server(delivery);
    const std::string image = accounts_.image();
    const auto restored = Accounts::restore(image);
    ASSERT_TRUE(restored);
    EXPECT_EQ(restored->image(), image);
    EXPECT_EQ(restored->delivery(), delivery);
    EXPECT_FALSE(restored->partial(0).empty());
    for (std::size_t size = 0; size < image.size(); ++size) {
      EXPECT_FALSE(Accounts::restore(image.substr(0, size))) << size;
    }
  }
}

TEST_F(AccountsTest, ACheckpointThatKnowsMoreThanTheJournalIsNamed) {
  begin();
  apply(answered(0, {{{0, 100}, 0}}));
  AuditReport report = audit(accounts_);
  compare(report, "s7", accounts_);
  EXPECT_FALSE(report.ahead);
  apply(answered(60, {}));
  compare(report, "s7", accounts_);
  EXPECT_NE(audit_table(report).find("checkpoint s7 contains 60 records more than the journal"),
            std::string::npos);
  EXPECT_NE(audit_json(report).find(R"("checkpoint_ahead":{"name":"s7","records":60})"),
            std::string::npos);
  AuditReport now = audit(accounts_);
  compare(now, "s7", accounts_);
  EXPECT_FALSE(now.ahead);
}

TEST_F(AccountsTest, TableAndJsonHaveTheSameNumbers) {
  begin();
  apply(answered(0, {{{0, 100}, 0}}));
  apply(answered(100, {}));
  apply(ledger::JobFinished{});
  const AuditReport report = audit(accounts_);
  EXPECT_EQ(
      audit_json(report),
      R"({"schema":1,"delivery":"exactly-once","finished":true,"exit_code":0,)"
      R"("epochs":[{"epoch":0,"records":100,)"
      R"("once":100,"repeated":0,"lost":0,"skipped":0,"unaccounted":0,"remaining":0,"skipped_by_program":[]}]})");
  const std::string table = audit_table(report);
  for (const char* name : {"once", "repeated", "lost", "skipped", "unaccounted", "kept"}) {
    EXPECT_NE(table.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace antdt::shard_server
