#include "ctl/trace/traced_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl::trace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

// Three ranks under a hang_after of 40 s: after 10 s without progress they are asked.
class TracedRanksTest : public testing::Test {
 protected:
  struct State {
    std::uint64_t steps = 0, samples = 0, collectives = 0, cpu_ms = 0;
    std::string inside = "";
  };
  void say(std::uint32_t index, const State& s, std::uint32_t attempt = 1) {
    wire::Traced said;
    said.rank = index;
    said.world_size = 3;
    said.steps = Step{s.steps};
    said.samples = s.samples;
    said.samples_known = s.samples > 0;
    said.collectives = s.collectives;
    said.inside = s.inside;
    said.cpu_ms = s.cpu_ms;
    feed(RankSaid{w(index, attempt), said});
  }
  void tell(std::uint32_t index, std::uint64_t number, bool inside,
            std::vector<wire::TracedCall> calls) {
    feed(StackHeard{w(index), {number, inside, "train.py:5", "stack", std::move(calls)}});
  }
  void feed(const Input& input) { ranks.step(input, clock.now(), effects); }
  void pass(Duration time) {
    clock.advance(time);
    feed(TimePassed{});
  }
  template <class T>
  std::vector<T> take() {
    std::vector<T> found;
    for (const Effect& e : effects) {
      if (const auto* one = std::get_if<T>(&e)) found.push_back(*one);
    }
    effects.clear();
    return found;
  }
  // w2 does not enter the second collective.
  void hang() {
    for (const std::uint32_t i : {0U, 1U}) say(i, {5, 80, 2, 0, "all_reduce"});
    say(2, {5, 80, 1, 0, ""});
    pass(seconds(11));
    const auto asked = take<AskForStacks>();
    ASSERT_THAT(asked, SizeIs(1));
    const std::uint64_t number = asked[0].number;
    const wire::TracedCall first{"", 1, "broadcast", "train.py:3"};
    const wire::TracedCall second{"", 2, "all_reduce", "train.py:4"};
    tell(0, number, true, {first, second});
    tell(1, number, true, {first, second});
    tell(2, number, second_inside,
         second_inside ? std::vector{first, {"", 2, "barrier", ""}} : std::vector{first});
  }
  ManualClock clock;
  Effects effects;
  TracedRanks ranks{seconds(40)};
  bool second_inside = false;
};

TEST_F(TracedRanksTest, NobodyIsAskedWhileOneMoves) {
  for (std::uint64_t step = 1; step < 60; ++step) {
    for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {step, 16 * step, step, 0, "all_reduce"});
    pass(seconds(1));
  }
  EXPECT_THAT(take<AskForStacks>(), SizeIs(0));
  EXPECT_EQ(ranks.progress().step, Step{59});
  EXPECT_EQ(ranks.progress().samples, 3U * 16 * 59);
  EXPECT_NEAR(ranks.progress().samples_per_second, 48, 1);
}

TEST_F(TracedRanksTest, RanksThatStandStillOutsideOfCollectivesDoNotHang) {
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {5, 80, 2, 0, ""});
  pass(seconds(1000));
  EXPECT_THAT(take<AskForStacks>(), SizeIs(0)) << "they evaluate, or write a checkpoint";
}

TEST_F(TracedRanksTest, ARankThatNeverCameIsNamedWhenAllHaveAnswered) {
  hang();
  const auto said = take<SayHang>();
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said[0].hang.text, HasSubstr("w2 never entered all_reduce #2"));
  EXPECT_TRUE(ranks.hang());
  say(2, {5, 80, 2, 0, "all_reduce"});
  EXPECT_THAT(take<SayHangOver>(), SizeIs(1)) << "it came late";
  EXPECT_FALSE(ranks.hang());
}

TEST_F(TracedRanksTest, ARankThatWorksOnSomethingElseIsNotEnded) {
  hang();
  effects.clear();
  for (std::uint64_t s = 1; s < 1000; ++s) {
    say(2, {5, 80, 1, 900 * s, ""});
    pass(seconds(1));
  }
  EXPECT_THAT(take<EndRank>(), SizeIs(0));
}

TEST_F(TracedRanksTest, ARankThatDoesNothingAtAllIsEndedMuchLater) {
  hang();
  effects.clear();
  for (int s = 0; s < 150; ++s) {
    say(2, {5, 80, 1, 10, ""});
    pass(seconds(1));
  }
  EXPECT_THAT(take<EndRank>(), SizeIs(0));
  for (int s = 0; s < 60; ++s) {
    say(2, {5, 80, 1, 10, ""});
    pass(seconds(1));
  }
  const auto ended = take<EndRank>();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].member, w(2));
}

TEST_F(TracedRanksTest, RanksThatAllWaitForOneAnotherAreEndedAfterTheTimeOfTheJob) {
  second_inside = true;
  hang();
  effects.clear();
  pass(seconds(20));
  EXPECT_THAT(take<EndRank>(), SizeIs(0));
  pass(seconds(10));
  const auto ended = take<EndRank>();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].member, w(2)) << "who called something else";
  EXPECT_THAT(ended[0].why, HasSubstr("it called barrier in its place"));
  EXPECT_THAT(ended[0].why, HasSubstr("wait in it for 41 s")) << "since when it is ended";
}

TEST_F(TracedRanksTest, ARankThatDoesNotAnswerIsNotAwaitedForLong) {
  for (const std::uint32_t i : {0U, 1U}) say(i, {5, 80, 2, 0, "all_reduce"});
  say(2, {5, 80, 1, 0, ""});
  pass(seconds(11));
  const std::uint64_t number = take<AskForStacks>().at(0).number;
  for (const std::uint32_t i : {0U, 1U}) tell(i, number, true, {{"", 2, "all_reduce", ""}});
  EXPECT_THAT(take<SayHang>(), SizeIs(0));
  pass(TracedRanks::kAnswerWithin);
  const auto said = take<SayHang>();
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said[0].hang.text, HasSubstr("w2 never entered"));
}

TEST_F(TracedRanksTest, AfterACollectiveFailedTheOthersAreAskedWhatTheyCalled) {
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {5, 80, 2, 0, "all_reduce"});
  tell(0, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  const auto asked = take<AskForStacks>();
  ASSERT_THAT(asked, SizeIs(1));
  tell(1, asked[0].number, true, {{"", 2, "all_reduce", "train.py:4"}});
  tell(2, asked[0].number, true, {{"", 2, "barrier", "train.py:9"}});
  const auto said = take<SayHang>();
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said[0].hang.text, HasSubstr("w2 never entered all_reduce #2"));
  for (const std::uint32_t i : {0U, 1U, 2U}) feed(RankGone{w(i)});
  EXPECT_TRUE(ranks.hang()) << "it is why they failed";
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {1, 16, 1, 0, ""}, 2);
  EXPECT_FALSE(ranks.hang()) << "others have come";
  EXPECT_EQ(ranks.progress().samples, 3U * (80 + 16));
}

TEST_F(TracedRanksTest, AFailureIsAskedAboutAlsoIfTheyAreAskedAlready) {
  for (const std::uint32_t i : {0U, 1U}) say(i, {5, 80, 2, 0, "all_reduce"});
  say(2, {5, 80, 1, 0, ""});
  pass(seconds(11));
  const std::uint64_t first = take<AskForStacks>().at(0).number;
  tell(0, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  const auto asked = take<AskForStacks>();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_GT(asked[0].number, first);
  tell(1, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  EXPECT_THAT(take<AskForStacks>(), SizeIs(0)) << "one answer is enough";
}

TEST_F(TracedRanksTest, ARankThatMovesDoesNotEndTheQuestionAboutAFailure) {
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {5, 80, 2, 0, "all_reduce"});
  tell(0, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  const std::uint64_t number = take<AskForStacks>().at(0).number;
  say(1, {6, 96, 2, 0, "all_reduce"});
  tell(1, number, true, {{"", 2, "all_reduce", "train.py:4"}});
  tell(2, number, true, {{"", 2, "barrier", "train.py:9"}});
  EXPECT_THAT(take<SayHang>(), SizeIs(1));
}

TEST_F(TracedRanksTest, AFailureStaysExplainedWhileTheOthersGoOnForAMoment) {
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {5, 80, 2, 0, "all_reduce"});
  tell(0, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  const std::uint64_t number = take<AskForStacks>().at(0).number;
  tell(1, number, true, {{"", 2, "all_reduce", "train.py:4"}});
  tell(2, number, true, {{"", 2, "barrier", "train.py:9"}});
  ASSERT_TRUE(ranks.hang());
  say(2, {6, 96, 3, 0, "all_reduce"});
  EXPECT_TRUE(ranks.hang());
  EXPECT_THAT(take<SayHangOver>(), SizeIs(0));
  // The script has caught the error, and goes on.
  pass(TracedRanks::kEndsWithin);
  say(2, {7, 112, 4, 0, "all_reduce"});
  EXPECT_FALSE(ranks.hang());
  EXPECT_THAT(take<SayHangOver>(), SizeIs(1));
}

TEST_F(TracedRanksTest, AfterAFailureThatNoMismatchExplainsTheyAreWatchedAsBefore) {
  for (const std::uint32_t i : {0U, 1U, 2U}) say(i, {5, 80, 2, 0, "all_reduce"});
  tell(0, 0, true, {{"", 2, "all_reduce", "train.py:4"}});
  const std::uint64_t number = take<AskForStacks>().at(0).number;
  for (const std::uint32_t i : {1U, 2U}) {
    tell(i, number, true, {{"", 2, "all_reduce", "train.py:4"}});
  }
  EXPECT_THAT(take<SayHang>(), SizeIs(0));
  EXPECT_FALSE(ranks.hang());
  pass(seconds(11));
  EXPECT_THAT(take<AskForStacks>(), SizeIs(1)) << "now they may hang";
}

}  // namespace
}  // namespace antdt::ctl::trace
