// Records that programs skip, in the accounts.
#include "shard_server/accounts/program_skips.h"

#include <gtest/gtest.h>

#include <string>

#include "accounts_testing.h"
#include "shard_server/accounts/audit.h"

namespace antdt::shard_server {
namespace {

// Two shards are granted; the program skips records of both.
class ProgramSkipsTest : public AccountsTest {
 protected:
  void grant_and_skip() {
    begin(2);
    apply(answered(0, {{{0, 20}, 0}, {{60, 80}, 0}}));
    // Places 15:25 are 15:20 and 60:65.
    apply(ledger::RecordsSkipped{kMember, {{15, 25, "torn"}, {30, 31, "long"}}});
  }
  [[nodiscard]] std::uint64_t records_for(const std::string& reason) const {
    const std::vector<EpochAccount> epochs = accounts_.epochs();
    for (const auto& [text, records] : epochs.back().skipped_by_program) {
      if (text == reason) return records;
    }
    return 0;
  }
};

TEST_F(ProgramSkipsTest, ARecordIsSkippedWhenItsHolderCommitsIt) {
  grant_and_skip();
  EXPECT_EQ(accounts_.epochs()[0].skipped, 0U);
  apply(answered(22, {}));
  EXPECT_EQ(accounts_.epochs()[0].once, 15U);
  EXPECT_EQ(accounts_.epochs()[0].skipped, 7U);
  EXPECT_EQ(records_for("torn"), 7U);
  apply(answered(40, {}));
  EXPECT_EQ(accounts_.epochs()[0].once, 29U);
  EXPECT_EQ(records_for("torn"), 10U);
  EXPECT_EQ(records_for("long"), 1U);
  EXPECT_EQ(accounts_.epochs()[0].remaining, 60U);
}

TEST_F(ProgramSkipsTest, WhatItsHolderGivesBackIsNotSkipped) {
  const Member other{{'w', 1}, Attempt{1}};
  grant_and_skip();
  apply(ledger::GenerationSettled{Generation{2}, {{kMember, 16, true}}, {other}});
  EXPECT_EQ(records_for("torn"), 1U);
  apply(ledger::FetchAnswered{other, 1, 0, AnswerStatus::kGranted, 0, {{{16, 100}, 0}}, {}});
  apply(ledger::FetchAnswered{other, 2, 84, AnswerStatus::kGranted, 0, {}, {}});
  EXPECT_EQ(accounts_.epochs()[0].once, 99U);
  EXPECT_EQ(records_for("torn"), 1U);
  EXPECT_EQ(records_for("long"), 0U);
}

TEST_F(ProgramSkipsTest, RecalledAndLateRecordsAreNotSkipped) {
  grant_and_skip();
  apply(ledger::RecallSettled{kMember, {}, 1, 1, 23});      // keeps 60:63
  apply(ledger::LateReturned{answered(15, {}), 3, false});  // 15:18
  apply(answered(20, {{{15, 18}, 0}, {{63, 80}, 0}}));
  EXPECT_EQ(records_for("torn"), 5U);
  apply(answered(40, {}));
  EXPECT_EQ(records_for("torn"), 5U);
  EXPECT_EQ(records_for("long"), 0U);
  EXPECT_EQ(accounts_.epochs()[0].once, 35U);
}

TEST_F(ProgramSkipsTest, ARecordThatIsSaidTwiceIsSkippedOnceForTheFirstReason) {
  grant_and_skip();
  apply(ledger::RecordsSkipped{kMember, {{14, 26, "late"}}});
  apply(answered(40, {}));
  EXPECT_EQ(records_for("torn"), 10U);
  EXPECT_EQ(records_for("late"), 2U);
}

TEST_F(ProgramSkipsTest, ASkippedRecordThatIsCommittedAgainIsRepeated) {
  begin();
  apply(answered(0, {{{0, 10}, 0}, {{5, 6}, 0}}));
  apply(ledger::RecordsSkipped{kMember, {{4, 6, "torn"}}});
  apply(answered(11, {}));
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.repeated, 1U);
  EXPECT_EQ(account.skipped, 1U);
  EXPECT_EQ(account.once, 8U);
  EXPECT_EQ(audit(accounts_).exit_code, 1);
}

TEST_F(ProgramSkipsTest, MoreThanWasGrantedContradictsTheJournal) {
  begin();
  apply(answered(0, {{{0, 20}, 0}}));
  const auto more =
      accounts_.apply(encode_record(ledger::RecordsSkipped{kMember, {{15, 25, "torn"}}}));
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("5 of them are not its"), std::string::npos);
}

TEST_F(ProgramSkipsTest, OnlySoManyReasonsAreKeptApart) {
  begin();
  apply(answered(0, {{{0, 100}, 0}}));
  for (std::uint64_t i = 0; i < 100; ++i) {
    apply(ledger::RecordsSkipped{kMember, {{i, i + 1, "reason " + std::to_string(i)}}});
  }
  apply(answered(100, {}));
  const EpochAccount account = accounts_.epochs()[0];
  EXPECT_EQ(account.skipped, 100U);
  EXPECT_EQ(account.skipped_by_program.size(), SkipReasons::kMost);
  EXPECT_EQ(records_for(std::string(SkipReasons::kOther)), 100 - (SkipReasons::kMost - 1));
}

TEST_F(ProgramSkipsTest, AReasonIsTextThatCanBeShown) {
  begin();
  apply(answered(0, {{{0, 100}, 0}}));
  apply(ledger::RecordsSkipped{kMember,
                               {{0, 1,
                                 "a\n\xff"
                                 "b"},
                                {1, 2, ""}}});
  apply(answered(100, {}));
  EXPECT_EQ(records_for("a ?b"), 1U);
  EXPECT_EQ(records_for("no reason was given"), 1U);
}

TEST_F(ProgramSkipsTest, TheNumbersStayExactWhenPositionsAreForgotten) {
  constexpr std::uint64_t kMany = 4 * EpochSkips::kMostKept;
  apply(ledger::JobDeclared{1, kMany, true});
  apply(ledger::MemberAdmitted{kMember, {}});
  apply(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  apply(answered(0, {{{0, kMany}, 0}}));
  ledger::RecordsSkipped skipped{kMember, {}};
  for (std::uint64_t i = 0; i < kMany; i += 2) skipped.records.push_back({i, i + 1, "torn"});
  apply(skipped);
  apply(answered(kMany, {}));
  EXPECT_EQ(records_for("torn"), kMany / 2);
  EXPECT_EQ(accounts_.epochs()[0].once, kMany / 2);
  const auto restored = Accounts::restore(accounts_.image());
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->epochs()[0].skipped, kMany / 2);
  EXPECT_LT(accounts_.image().size(), 200'000U);
}

TEST_F(ProgramSkipsTest, ItsImageHasWhatIsSkippedAndWhatIsSaid) {
  grant_and_skip();
  apply(answered(22, {}));
  const std::string image = accounts_.image();
  auto restored = Accounts::restore(image);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->image(), image);
  for (std::size_t size = 0; size < image.size(); ++size) {
    EXPECT_FALSE(Accounts::restore(image.substr(0, size))) << size;
  }
  accounts_ = *std::move(restored);
  apply(answered(40, {}));
  EXPECT_EQ(records_for("torn"), 10U);
  EXPECT_EQ(records_for("long"), 1U);
}

TEST_F(ProgramSkipsTest, AnImageWithMoreSkippedThanCommittedIsDamaged) {
  grant_and_skip();
  apply(answered(40, {}));
  const std::string image = accounts_.image();
  int refused = 0;
  for (std::size_t at = 0; at < image.size(); ++at) {
    for (const char byte : {'\0', '\1', '\x7f'}) {
      std::string other = image;
      other[at] = byte;
      const auto restored = Accounts::restore(other);
      if (!restored) ++refused;
      if (!restored) continue;
      for (const EpochAccount& e : restored->epochs()) EXPECT_LE(e.skipped, e.records + 100);
    }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace antdt::shard_server
