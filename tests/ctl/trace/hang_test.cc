#include "ctl/trace/hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Ranks that were asked, with their tracers' answers as text.
class HangTest : public testing::Test {
 protected:
  RankFound& rank(std::uint32_t index) {
    RankFound found;
    found.worker = {'w', index};
    found.said.rank = index;
    found.waits_s = 31;
    found.told.emplace();
    found.told->where = "train.py:52 in main";
    found.told->stack = "the stack of " + std::to_string(index);
    ranks.push_back(found);
    return ranks.back();
  }
  static void called(RankFound& rank, std::uint64_t number, const std::string& name,
                     const std::string& where, const std::string& group = "") {
    rank.told->calls.push_back({group, number, name, where});
  }
  // Ranks 0 to 3 have called the first two collectives, and all except `but` are in the third.
  void all_in_the_third_but(std::uint32_t but) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      RankFound& r = rank(i);
      called(r, 1, "broadcast", "train.py:9");
      called(r, 2, "all_reduce float32[1]", "train.py:41");
      if (i == but) continue;
      called(r, 3, "all_reduce float32[1]", "train.py:41");
      r.told->inside = true;
    }
  }
  std::vector<RankFound> ranks;
};

TEST_F(HangTest, ARankThatDoesSomethingElseNeverEnteredWhatTheOthersWaitIn) {
  all_in_the_third_but(2);
  const Hang hang = explain_hang(ranks);
  EXPECT_EQ(hang.text,
            "w2 never entered all_reduce float32[1] #3 (called from train.py:41): it is at "
            "train.py:52 in main; w0, w1, w3 wait in it");
  EXPECT_EQ(told(hang), hang.text + " for 31 s");
  EXPECT_EQ(told(hang, 60), hang.text + " for 91 s") << "told later";
  EXPECT_THAT(hang.culprits, ElementsAre(WorkerId{'w', 2}));
  EXPECT_FALSE(hang.all_wait) << "it may come";
  ASSERT_EQ(hang.stacks.size(), 4U);
  EXPECT_EQ(hang.stacks[2].stack, "the stack of 2");
}

TEST_F(HangTest, ARankThatSkippedOneIsNamedByWhatItCalledInItsPlace) {
  all_in_the_third_but(1);
  called(ranks[1], 3, "barrier", "train.py:60");
  ranks[1].told->inside = true;
  const Hang hang = explain_hang(ranks);
  EXPECT_THAT(hang.text, HasSubstr("w1 never entered all_reduce float32[1] #3 (called from "
                                   "train.py:41): it called barrier at train.py:60 in its place"));
  EXPECT_THAT(hang.culprits, ElementsAre(WorkerId{'w', 1}));
  EXPECT_TRUE(hang.all_wait);
}

TEST_F(HangTest, TheFirstDifferenceCountsNotTheLast) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    RankFound& r = rank(i);
    called(r, 1, i == 2 ? "DDP backward" : "all_reduce float32[1]", "train.py:41");
    called(r, 2, i == 2 ? "all_reduce float32[1]" : "DDP backward", "train.py:41");
    if (i == 2) called(r, 3, "barrier", "train.py:70");
    r.told->inside = true;
  }
  EXPECT_THAT(explain_hang(ranks).text, HasSubstr("w2 never entered all_reduce float32[1] #1"));
}

TEST_F(HangTest, ARankThatDoesNotAnswerIsTheCause) {
  all_in_the_third_but(3);
  ranks[3].told.reset();
  const Hang hang = explain_hang(ranks);
  EXPECT_THAT(hang.text, HasSubstr("w3 never entered"));
  EXPECT_THAT(hang.text, HasSubstr("does not answer"));
  EXPECT_THAT(hang.culprits, ElementsAre(WorkerId{'w', 3}));
}

TEST_F(HangTest, WhereAllAreInTheSameNobodyIsBlamed) {
  all_in_the_third_but(9);
  const Hang hang = explain_hang(ranks);
  EXPECT_EQ(
      told(hang),
      "every rank has entered all_reduce float32[1] #3 (called from train.py:41), and it does "
      "not end; w0, w1, w2, w3 wait in it for 31 s: look at the network between the hosts");
  EXPECT_THAT(hang.culprits, IsEmpty());
  EXPECT_TRUE(hang.all_wait);
}

TEST_F(HangTest, ARankThatIsNotInTheProcessGroupIsNotMissed) {
  for (std::uint32_t i = 0; i < 3; ++i) rank(i);
  called(ranks[0], 1, "all_reduce float32[8]", "train.py:7", "0,2");
  ranks[0].told->inside = true;
  const Hang hang = explain_hang(ranks);
  EXPECT_THAT(hang.culprits, ElementsAre(WorkerId{'w', 2}));
  EXPECT_THAT(hang.text, HasSubstr("of ranks 0,2"));
  EXPECT_THAT(hang.text, Not(HasSubstr("w1")));
}

TEST_F(HangTest, WithTwoRanksThatDifferBothCallsAreNamedAndNoRankIsBlamed) {
  called(rank(0), 1, "barrier", "train.py:1");
  called(rank(1), 1, "all_reduce", "train.py:2");
  for (RankFound& r : ranks) r.told->inside = true;
  const Hang hang = explain_hang(ranks);
  EXPECT_EQ(hang.text,
            "the ranks called different collectives: w1 called all_reduce #1 (called from "
            "train.py:2), and w0 barrier #1 (called from train.py:1) in its place");
  EXPECT_EQ(told(hang, 60), hang.text) << "nobody waits for another";
  EXPECT_THAT(hang.culprits, IsEmpty());
  EXPECT_TRUE(hang.all_wait);
  EXPECT_EQ(hang.stacks.size(), 2U);
  ASSERT_TRUE(explain_mismatch(ranks));
  EXPECT_EQ(explain_mismatch(ranks)->text, hang.text);
}

TEST_F(HangTest, RanksThatCalledTheSameFailedForAnotherReason) {
  all_in_the_third_but(2);
  EXPECT_FALSE(explain_mismatch(ranks));
  called(ranks[2], 3, "barrier", "train.py:60");
  ASSERT_TRUE(explain_mismatch(ranks));
  EXPECT_THAT(explain_mismatch(ranks)->culprits, ElementsAre(WorkerId{'w', 2}));
}

}  // namespace
}  // namespace antdt::ctl::trace
