#include "ctl/job/skip_list.h"

#include <gtest/gtest.h>

namespace antdt::ctl::job {
namespace {

shard_server::Phase phase(std::uint64_t number, shard_server::PhaseKind kind, std::uint32_t epoch) {
  return {number, kind, Epoch{epoch}};
}
constexpr auto kTrain = shard_server::PhaseKind::kTrain;
constexpr auto kEval = shard_server::PhaseKind::kEval;

SkipList list_of(std::uint32_t epoch, std::uint64_t lineage) {
  return SkipList({{Epoch{epoch}, {10, 20, "damaged", "ada"}, Lineage{lineage}}});
}

TEST(SkipList, SkipsAreDeclaredOnceInTheTrainingOfTheirEpoch) {
  SkipList skips = list_of(1, 0);
  EXPECT_TRUE(skips.take_due(phase(1, kTrain, 0), Lineage{1}).empty());
  EXPECT_TRUE(skips.take_due(phase(2, kEval, 1), Lineage{1}).empty());
  const auto due = skips.take_due(phase(3, kTrain, 1), Lineage{1});
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].order.from, 10U);
  EXPECT_EQ(due[0].order.to, 20U);
  EXPECT_EQ(due[0].order.who, "ada");
  EXPECT_TRUE(skips.take_due(phase(3, kTrain, 1), Lineage{1}).empty());
}

TEST(SkipList, ALineageThatBeginsAtACheckpointIsToldOfSkipsAgain) {
  SkipList skips = list_of(0, 1);
  EXPECT_TRUE(skips.take_due(phase(1, kTrain, 0), Lineage{1}).empty());
  EXPECT_EQ(skips.take_due(phase(1, kTrain, 0), Lineage{2}).size(), 1U);
  EXPECT_EQ(skips.all().at(0).lineage, Lineage{2});
}

TEST(SkipList, NothingIsDeclaredBeforeAPhaseIsOpen) {
  SkipList skips = list_of(0, 0);
  EXPECT_TRUE(skips.take_due({}, Lineage{1}).empty());
}

TEST(SkipList, TheyAreWrittenAgainWhenOneWasDeclared) {
  SkipList skips = list_of(0, 0);
  EXPECT_FALSE(skips.take_changed());
  std::ignore = skips.take_due(phase(1, kTrain, 0), Lineage{1});
  EXPECT_TRUE(skips.take_changed());
  EXPECT_FALSE(skips.take_changed());
}

TEST(SkipList, TheNextIncarnationLearnsFromTheJournalWhatItsFileLacks) {
  SkipList skips;
  EXPECT_EQ(skips.record_if_changed(), "");
  skips.add(Epoch{0}, {10, 20, "broken", "root"});
  EXPECT_EQ(skips.record_if_changed(), "") << "it is not declared yet";
  const shard_server::Phase open{1, shard_server::PhaseKind::kTrain, Epoch{0}};
  ASSERT_EQ(skips.take_due(open, Lineage{1}).size(), 1U);
  const std::string record = skips.record_if_changed();
  EXPECT_NE(record, "");
  EXPECT_TRUE(skips.take_changed());
  EXPECT_EQ(skips.record_if_changed(), "");
  EXPECT_EQ(skips.record(), record);

  shard_server::JournalContent journal;
  journal.snapshot.push_back({std::string(kSkipRecord), "replaced by a record"});
  journal.records.push_back({std::string(kSkipRecord), record});
  SkipList next({{Epoch{0}, {30, 40, "more", "root"}, Lineage{1}}});
  ASSERT_TRUE(next.learn(journal));
  ASSERT_EQ(next.all().size(), 2U);
  EXPECT_EQ(next.all()[1].order.from, 10U);
  EXPECT_EQ(next.all()[1].order.reason, "broken");
  EXPECT_EQ(next.take_due(open, Lineage{1}).size(), 1U) << "declared once more";
  ASSERT_TRUE(next.learn(journal));
  EXPECT_EQ(next.all().size(), 2U) << "it is known";
}

TEST(SkipList, ARecordThatCannotBeReadIsAnError) {
  SkipList skips;
  shard_server::JournalContent journal;
  journal.records.push_back({std::string(kSkipRecord), "\xc1"});
  EXPECT_FALSE(skips.learn(journal));
}

}  // namespace
}  // namespace antdt::ctl::job
