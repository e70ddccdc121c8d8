// Tests of a run's history, and of what antdt data which reads from it.
#include "shard_server/history/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/os/fs.h"
#include "shard_server/history/step_records.h"

namespace antdt::shard_server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr WorkerId w0{'w', 0}, w1{'w', 1}, w2{'w', 2};

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    data_.records = 100;
    data_.shard_records = 10;
    data_.shuffle = Shuffle::kNone;
    data_.seed = 7;
  }
  void write(std::vector<history::Entry> entries, Incarnation incarnation = Incarnation{1}) {
    auto opened = History::open(path_, data_, incarnation);
    ASSERT_TRUE(opened) << opened.error().message;
    for (history::Entry& entry : entries) opened->append(std::move(entry));
    const Status written = opened->sync();
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_FALSE(opened->unsynced());
  }
  [[nodiscard]] StepRecords read(std::uint64_t step) const {
    auto found = read_step(path_, Step{step});
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : StepRecords{};
  }
  // "w0: 0-4 w1: 10"
  [[nodiscard]] std::string text(std::uint64_t step) const {
    std::string text;
    for (const MemberRecords& member : read(step).members) {
      std::vector<std::uint64_t> all;
      for (const ShardRecords& s : member.shards) {
        all.insert(all.end(), s.records.begin(), s.records.end());
      }
      std::ranges::sort(all);
      text += fmt::format("{}{}: {}", text.empty() ? "" : " ", member.worker, as_ranges(all));
    }
    return text;
  }
  static history::Settled settled(std::uint64_t generation, std::uint64_t step,
                                  std::vector<WorkerId> members = {w0, w1},
                                  std::uint64_t lineage = 1) {
    return {Lineage{lineage}, Generation{generation}, Step{step}, std::move(members)};
  }
  static history::Grant grant(std::uint64_t generation, WorkerId worker, std::uint64_t place,
                              Interval at, std::uint64_t phase = 1, std::uint32_t epoch = 0) {
    return {Generation{generation}, phase, Epoch{epoch}, worker, place, at};
  }
  static history::Steps steps(std::uint64_t generation, std::uint64_t first, std::uint64_t count,
                              std::vector<std::uint64_t> places, std::vector<std::uint64_t> records,
                              std::uint64_t phase = 1) {
    return {Generation{generation},
            {Step{first}, count, phase, std::move(places), std::move(records)}};
  }

  TempDir directory_;
  std::string path_ = directory_ / "history.db";
  DataSet data_;
};

TEST_F(HistoryTest, AStepIsWhatEachMemberConsumedOfItsGrants) {
  write({settled(1, 0), grant(1, w0, 0, {0, 8}), grant(1, w1, 0, {20, 30}),
         grant(1, w0, 8, {40, 50}), steps(1, 1, 3, {0, 0}, {5, 2}),
         steps(1, 4, 1, {15, 6}, {1, 4})});
  EXPECT_EQ(text(1), "w0: 0-4 w1: 20-21");
  EXPECT_EQ(text(2), "w0: 5-7 40-41 w1: 22-23");
  EXPECT_EQ(text(3), "w0: 42-46 w1: 24-25");
  EXPECT_EQ(text(4), "w0: 47 w1: 26-29");
  const StepRecords second = read(2);
  EXPECT_EQ(second.records(), 7U);
  EXPECT_EQ(second.unknown(), 0U);
  EXPECT_EQ(second.epoch, Epoch{0});
  ASSERT_EQ(second.members[0].shards.size(), 2U);
  EXPECT_EQ(second.members[0].shards[1].shard, 4U);
}

TEST_F(HistoryTest, RecordsAreThoseOfTheShuffledStream) {
  data_.shuffle = Shuffle::kFull;
  data_.records = 95;  // the last shard is short
  std::vector<history::Entry> entries{settled(1, 0, {w0})};
  entries.push_back(grant(1, w0, 0, {0, 95}, 1, 1));
  entries.push_back(steps(1, 1, 19, {0}, {5}));
  write(std::move(entries));
  const EpochStream stream(data_, Epoch{1}, PhaseKind::kTrain);
  std::set<std::uint64_t> all;
  std::uint64_t shuffled = 0;
  for (std::uint64_t step = 1; step <= 19; ++step) {
    std::set<std::uint64_t> expected, found;
    for (const wire::Piece& piece : stream.pieces(5 * (step - 1), 5 * step)) {
      const Permutation order(piece.shard_records, piece.order_seed);
      for (auto p = piece.from; p < piece.to; ++p) expected.insert(piece.shard_first + order(p));
    }
    const StepRecords made = read(step);
    for (const ShardRecords& shard : made.members[0].shards) {
      found.insert(shard.records.begin(), shard.records.end());
      EXPECT_TRUE(std::ranges::is_sorted(shard.records));
    }
    EXPECT_EQ(found, expected);
    shuffled += found.contains(5 * (step - 1)) ? 0 : 1;
    all.insert(found.begin(), found.end());
  }
  EXPECT_EQ(all.size(), 95U);
  EXPECT_GT(shuffled, 5U);
}

TEST_F(HistoryTest, AStepFromBeforeTheDataGrewHasTheRecordsOfThatTime) {
  data_.shuffle = Shuffle::kFull;
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 60}), steps(1, 1, 6, {0}, {10})});
  const std::string before = text(3);
  data_.records = 150;
  data_.began_with = 100;
  history::Grant of_that_phase = grant(2, w0, 0, {60, 100});
  of_that_phase.records = 100;
  write({settled(2, 6, {w0}), of_that_phase, steps(2, 7, 4, {0}, {10})}, Incarnation{2});
  EXPECT_EQ(text(3), before);
  std::set<std::uint64_t> all;
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const StepRecords found = read(step);
    for (const ShardRecords& shard : found.members.at(0).shards) {
      all.insert(shard.records.begin(), shard.records.end());
    }
  }
  EXPECT_EQ(all.size(), 100U);
  EXPECT_EQ(*all.rbegin(), 99U);
}

TEST_F(HistoryTest, RecalledRecordsHaveNoHolderUntilTheyAreGrantedAgain) {
  write({settled(1, 0), grant(1, w0, 0, {0, 10}), grant(1, w0, 10, {10, 20}),
         grant(1, w1, 0, {20, 22}), history::Cut{Generation{1}, 1, w0, 4}, grant(1, w1, 2, {4, 10}),
         grant(1, w0, 4, {60, 70}), steps(1, 1, 2, {0, 0}, {4, 4})});
  EXPECT_EQ(text(1), "w0: 0-3 w1: 4-5 20-21");
  EXPECT_EQ(text(2), "w0: 60-63 w1: 6-9");
}

// After a power failure the journal's latest grants are made again, perhaps in other parts; after a
// kill the history may have a grant that was never sent.
TEST_F(HistoryTest, AGrantReplacesWhatWasThereFromItsPlaceOn) {
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 10}), grant(1, w0, 10, {10, 20})});
  write({grant(1, w0, 4, {30, 34}), steps(1, 1, 2, {0}, {4})}, Incarnation{2});
  EXPECT_EQ(text(1), "w0: 0-3");
  EXPECT_EQ(text(2), "w0: 30-33");
}

TEST_F(HistoryTest, TheNextGenerationEndsTheOneBefore) {
  write({settled(1, 0), grant(1, w0, 0, {0, 50}), grant(1, w1, 0, {50, 90}),
         steps(1, 1, 3, {0, 0}, {2, 2}),  // the third completed on the member that died
         settled(2, 2, {w1, w2}), grant(2, w1, 0, {54, 60}), grant(2, w2, 0, {4, 10}),
         steps(2, 3, 2, {0, 0}, {2, 2})});
  EXPECT_EQ(text(2), "w0: 2-3 w1: 52-53");
  EXPECT_EQ(text(3), "w1: 54-55 w2: 4-5");
  EXPECT_EQ(read(3).generation, Generation{2});
  EXPECT_FALSE(read(3).undone_by);
}

TEST_F(HistoryTest, TheNewestLineageInWhichTheStepWasAppliedAnswers) {
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 50}), steps(1, 1, 8, {0}, {2}),
         settled(2, 4, {w0}, 2), grant(2, w0, 0, {80, 90}), steps(2, 5, 2, {0}, {2})});
  EXPECT_EQ(text(4), "w0: 6-7");
  EXPECT_FALSE(read(4).undone_by) << "the checkpoint has it";
  EXPECT_EQ(text(5), "w0: 80-81");
  EXPECT_EQ(read(5).lineage, Lineage{2});
  // The second lineage has not reached that step.
  EXPECT_EQ(text(8), "w0: 14-15");
  EXPECT_EQ(read(8).lineage, Lineage{1});
  EXPECT_EQ(read(8).undone_by, Lineage{2});
  EXPECT_THAT(step_table(read(8)), HasSubstr("not in the model: lineage 2 began"));
}

TEST_F(HistoryTest, AGenerationOfTheSameNumberReplacesTheOneOfALostJournal) {
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 50}), steps(1, 1, 8, {0}, {2})});
  write({settled(1, 0, {w0})}, Incarnation{2});  // a repeated record changes nothing
  EXPECT_EQ(text(8), "w0: 14-15");
  write({settled(1, 3, {w0}, 2), grant(1, w0, 0, {70, 80}), steps(1, 4, 1, {0}, {2})},
        Incarnation{3});
  EXPECT_EQ(text(4), "w0: 70-71");
  EXPECT_FALSE(read_step(path_, Step{8}));
}

TEST_F(HistoryTest, AStepThatNobodyAppliedIsAnErrorThatSaysWhichTheLastIs) {
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 50}), steps(1, 1, 8, {0}, {2})});
  const auto found = read_step(path_, Step{9});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(found.error().message, HasSubstr("step 9 is not known: the last one is 8"));
  EXPECT_EQ(read_step(path_, Step{0}).error().kind, ErrorKind::kCorrupt);
}

TEST_F(HistoryTest, WithoutAGenerationNoStepIsKnown) {
  write({});
  EXPECT_EQ(read_step(path_, Step{1}).error().kind, ErrorKind::kAborted);
}

TEST_F(HistoryTest, AStepWithoutRecordsSaysSo) {
  write({settled(1, 0), steps(1, 1, 1, {0, 0}, {0, 0})});
  const StepRecords found = read(1);
  EXPECT_EQ(found.records(), 0U);
  EXPECT_FALSE(found.epoch);
  EXPECT_THAT(step_table(found), HasSubstr("step 1 trained no record"));
}

TEST_F(HistoryTest, AGapIsCountedAndNotFilled) {
  write({settled(1, 0, {w0}), grant(1, w0, 0, {0, 3}), grant(1, w0, 8, {8, 20}),
         steps(1, 1, 2, {0}, {5}), steps(1, 5, 1, {20}, {5})});
  EXPECT_EQ(read(1).unknown(), 2U);
  EXPECT_EQ(read(2).unknown(), 3U);
  EXPECT_THAT(step_table(read(2)), HasSubstr("3 of them are not known"));
  const auto lost = read_step(path_, Step{4});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(lost.error().message, HasSubstr("step 4 is missing"));
}

TEST_F(HistoryTest, AnOlderIncarnationWritesNothingAnyMore) {
  auto old = History::open(path_, data_, Incarnation{1});
  ASSERT_TRUE(old);
  write({settled(1, 0, {w0})}, Incarnation{2});
  old->append(settled(9, 0, {w1}));
  const Status written = old->commit();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("incarnation 2"));
  EXPECT_TRUE(old->dirty());
}

TEST_F(HistoryTest, JsonNamesEveryRecord) {
  write({settled(1, 0), grant(1, w0, 0, {8, 12}), grant(1, w1, 0, {20, 30}),
         steps(1, 1, 1, {0, 0}, {4, 2})});
  const auto json = nlohmann::json::parse(step_json(read(1)));
  EXPECT_EQ(json["step"], 1);
  EXPECT_EQ(json["epoch"], 0);
  EXPECT_EQ(json["lineage"], 1);
  EXPECT_EQ(json["records_total"], 6);
  EXPECT_TRUE(json["undone_by"].is_null());
  EXPECT_EQ(json["workers"][0]["worker"], "w0");
  EXPECT_THAT(json["workers"][0]["records"].get<std::vector<int>>(), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(json["workers"][0]["shards"][1]["records"].get<std::vector<int>>(),
              ElementsAre(10, 11));
  EXPECT_THAT(json["workers"][1]["records"].get<std::vector<int>>(), ElementsAre(20, 21));
}

TEST(Ranges, ConsecutiveNumbersAreOneRange) {
  EXPECT_EQ(as_ranges({}), "");
  EXPECT_EQ(as_ranges({3}), "3");
  EXPECT_EQ(as_ranges({3, 5, 6, 7, 9}), "3 5-7 9");
}

}  // namespace
}  // namespace antdt::shard_server
