#include "trainer/client/shard_feed.h"

#include <gtest/gtest.h>

namespace antdt::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A piece of `count` positions from `from` on of shard `shard` (1000 records).
wire::Piece piece(std::uint64_t shard, std::uint64_t from, std::uint64_t count) {
  return {shard, shard * 1000, 1000, from, from + count, 1, true};
}
wire::Grants granted(std::vector<wire::Piece> pieces) {
  return {1, wire::GrantStatus::kGranted, std::move(pieces), 0};
}

class ShardFeedTest : public ::testing::Test {
 protected:
  ShardFeedTest() {
    feed.set_hold(100);
    feed.begin(1, Generation{4});
  }
  // Has `count` records granted; the request for them must be due.
  void fill(std::uint64_t count) {
    const auto request = feed.poll(now);
    ASSERT_TRUE(request);
    feed.on_grants(request->seq, granted({piece(0, next_, count)}), now);
    next_ += count;
  }

  ShardFeed feed;
  MonoTime now{seconds(1000)};

 private:
  std::uint64_t next_ = 0;
};

TEST_F(ShardFeedTest, ARequestHasNamedSumsOnce) {
  fill(125);
  ASSERT_GT(feed.take(60).records, 0U);
  wire::EvalPartial first, second;
  first.named = {{"hits", 2}, {"tokens", 30}};
  second.named = {{"hits", 1}};
  feed.commit(10, first, now);
  feed.commit(60, second, now);
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  ASSERT_EQ(request->fetch.partials.size(), 2U);
  EXPECT_EQ(request->fetch.partials[0].named, (wire::NamedSums{{"hits", 3}, {"tokens", 30}}));
  EXPECT_TRUE(request->fetch.partials[1].named.empty());
}

TEST_F(ShardFeedTest, TheFirstFetchAsksForTheHoldAndAQuarterMore) {
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->seq, 1U);
  EXPECT_EQ(request->generation, Generation{4});
  EXPECT_EQ(request->fetch.phase, 1U);
  EXPECT_EQ(request->fetch.want, 125U);
  EXPECT_EQ(request->fetch.place, 0U);
}

TEST_F(ShardFeedTest, OneRequestIsOutstandingAndIsRepeatedUnchanged) {
  const auto first = feed.poll(now);
  ASSERT_TRUE(first);
  EXPECT_FALSE(feed.poll(now + milliseconds(1999)));
  EXPECT_EQ(feed.deadline(), now + seconds(2));
  const auto again = feed.poll(now + seconds(2));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->seq, first->seq);
  EXPECT_EQ(again->fetch.want, first->fetch.want);
  EXPECT_FALSE(feed.poll(now + seconds(3)));
}

TEST_F(ShardFeedTest, TheAnswerToARepeatedRequestCountsOnce) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({piece(0, 0, 125)}), now);
  feed.on_grants(request->seq, granted({piece(0, 0, 125)}), now);
  EXPECT_EQ(feed.in_hand(), 125U);
}

TEST_F(ShardFeedTest, FetchesAgainAsSoonAsTheHoldIsNotReached) {
  fill(125);
  EXPECT_EQ(feed.take(25).records, 25U);
  EXPECT_FALSE(feed.poll(now));
  EXPECT_EQ(feed.take(1).records, 1U);
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->seq, 2U);
  EXPECT_EQ(request->fetch.want, 26U);
}

TEST_F(ShardFeedTest, TakeGivesPartsOfPiecesInOrderAndNeverMoreThanAsked) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({piece(3, 10, 5), piece(7, 0, 10)}), now);
  Taken taken = feed.take(3);
  ASSERT_EQ(taken.pieces.size(), 1U);
  EXPECT_EQ(taken.pieces[0].from, 10U);
  EXPECT_EQ(taken.pieces[0].to, 13U);
  taken = feed.take(6);
  ASSERT_EQ(taken.pieces.size(), 2U);
  EXPECT_EQ(taken.pieces[0].shard, 3U);
  EXPECT_EQ(taken.pieces[0].from, 13U);
  EXPECT_EQ(taken.pieces[0].to, 15U);
  EXPECT_EQ(taken.pieces[1].shard, 7U);
  EXPECT_EQ(taken.pieces[1].from, 0U);
  EXPECT_EQ(taken.pieces[1].to, 4U);
  EXPECT_EQ(taken.records, 6U);
  EXPECT_EQ(feed.in_hand(), 6U);
}

TEST_F(ShardFeedTest, WaitIsAskedAgainAfterTheTimeTheServiceSays) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, {1, wire::GrantStatus::kWait, {}, 250}, now);
  const Taken taken = feed.take(10);
  EXPECT_EQ(taken.status, TakeStatus::kWait);
  EXPECT_TRUE(taken.dry);
  EXPECT_EQ(feed.deadline(), now + milliseconds(250));
  EXPECT_FALSE(feed.poll(now + milliseconds(249)));
  const auto again = feed.poll(now + milliseconds(250));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->seq, 2U);
}

TEST_F(ShardFeedTest, AnAnswerUnderWayIsNotDry) {
  ASSERT_TRUE(feed.poll(now));
  EXPECT_FALSE(feed.take(10).dry);
}

TEST_F(ShardFeedTest, TheEndFollowsTheLastHeldRecordAndNothingIsFetchedAfterIt) {
  auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({piece(0, 0, 10)}), now);
  request = feed.poll(now);
  feed.on_grants(request->seq, {1, wire::GrantStatus::kEnd, {}, 0}, now);
  EXPECT_EQ(feed.take(100).status, TakeStatus::kData);
  EXPECT_EQ(feed.take(100).status, TakeStatus::kEnd);
  EXPECT_FALSE(feed.poll(now + seconds(60)));
  EXPECT_FALSE(feed.deadline());
}

TEST_F(ShardFeedTest, AStaleAnswerStopsFetchingUntilTheNextPhase) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, {1, wire::GrantStatus::kStale, {}, 0}, now);
  EXPECT_EQ(feed.take(1).status, TakeStatus::kWait);
  EXPECT_FALSE(feed.poll(now + seconds(60)));
  feed.begin(2, Generation{5});
  const auto next = feed.poll(now);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->fetch.phase, 2U);
  EXPECT_EQ(next->generation, Generation{5});
  EXPECT_GT(next->seq, request->seq);
}

TEST_F(ShardFeedTest, AnAnswerToTheRequestOfAnEarlierPhaseChangesNothing) {
  const auto request = feed.poll(now);
  feed.begin(2, Generation{4});
  feed.on_grants(request->seq, granted({piece(0, 0, 10)}), now);
  EXPECT_EQ(feed.in_hand(), 0U);
}

TEST_F(ShardFeedTest, APlaceGoesWithTheNextFetch) {
  fill(125);
  EXPECT_EQ(feed.take(50).records, 50U);
  feed.commit(40, std::nullopt, now);
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->fetch.place, 40U);
  EXPECT_GT(request->fetch.want, 0U);
}

TEST_F(ShardFeedTest, APlaceGoesAloneWhenNothingIsToBeFetchedSoon) {
  fill(125);
  EXPECT_EQ(feed.take(20).records, 20U);
  feed.commit(20, std::nullopt, now);
  EXPECT_FALSE(feed.poll(now));
  EXPECT_EQ(feed.deadline(), now + milliseconds(50));
  const auto request = feed.poll(now + milliseconds(50));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->fetch.place, 20U);
  EXPECT_EQ(request->fetch.want, 0U);
}

TEST_F(ShardFeedTest, APlaceThatWentWithProgressIsNotSentAlone) {
  fill(125);
  EXPECT_EQ(feed.take(20).records, 20U);
  feed.commit(20, std::nullopt, now);
  feed.place_was_sent(1, 20);
  EXPECT_FALSE(feed.poll(now + seconds(1)));
}

TEST_F(ShardFeedTest, ThePlaceNeverPassesWhatWasTaken) {
  fill(125);
  EXPECT_EQ(feed.take(30).records, 30U);
  feed.commit(80, std::nullopt, now);
  EXPECT_EQ(feed.poll(now)->fetch.place, 30U);
}

TEST_F(ShardFeedTest, PartialsGoAtOnceAndExactlyOnce) {
  fill(125);
  EXPECT_EQ(feed.take(10).records, 10U);
  feed.commit(10, wire::EvalPartial{10, 1.5, 7, {}, {}, {}}, now);
  const auto first = feed.poll(now);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->fetch.partials.size(), 1U);
  EXPECT_EQ(feed.take(5).records, 5U);
  feed.commit(15, wire::EvalPartial{5, 0.5, 3, {}, {}, {}}, now);
  const auto repeated = feed.poll(now + seconds(2));
  ASSERT_TRUE(repeated);
  EXPECT_EQ(repeated->fetch.partials.size(), 1U);
  EXPECT_EQ(repeated->fetch.place, 10U);
  feed.on_grants(first->seq, granted({}), now);
  const auto second = feed.poll(now);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->fetch.partials.size(), 1U);
  EXPECT_EQ(second->fetch.partials[0].records, 5U);
  EXPECT_EQ(second->fetch.place, 15U);
}

TEST_F(ShardFeedTest, ACommitWhileItWaitsMakesItAskAgainAtOnce) {
  auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({piece(0, 0, 10)}), now);
  request = feed.poll(now);
  feed.on_grants(request->seq, {1, wire::GrantStatus::kWait, {}, 1000}, now);
  EXPECT_EQ(feed.take(10).records, 10U);
  feed.commit(10, wire::EvalPartial{10, 0, 0, {}, {}, {}}, now);
  request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_GT(request->fetch.want, 0U);
}

TEST_F(ShardFeedTest, LateRecordsGoBackAndTheRestKeepTheirPositions) {
  fill(125);
  EXPECT_EQ(feed.take(30).records, 30U);
  feed.commit(10, std::nullopt, now);
  feed.give_back(8);
  EXPECT_TRUE(feed.gives_back());
  EXPECT_EQ(feed.deadline(), MonoTime::min());
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->fetch.place, 10U);
  EXPECT_EQ(request->fetch.late, 8U);
  EXPECT_FALSE(feed.on_recall(Generation{4}, 1, {1, 50})) << "the answer may bring more";
  const auto again = feed.poll(now + ShardFeed::kRepeatAfter);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->seq, request->seq);
  EXPECT_EQ(again->fetch.late, 8U);
  feed.on_grants(request->seq, granted({}), now);
  EXPECT_FALSE(feed.gives_back());
  // 22 are taken now, of 117.
  feed.commit(30, std::nullopt, now);
  const auto next = feed.poll(now + ShardFeed::kCommitWithin);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->fetch.place, 22U);
  EXPECT_EQ(next->fetch.late, 0U);
  feed.on_grants(next->seq, granted({}), now);
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 100})->records, 17U);
}

TEST_F(ShardFeedTest, RecordsThatComeTooLateDuringARequestGoBackWithTheNext) {
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  feed.give_back(4);
  feed.give_back(3);
  EXPECT_FALSE(feed.poll(now));
  feed.on_grants(request->seq, granted({piece(0, 0, 50)}), now);
  EXPECT_TRUE(feed.gives_back());
  EXPECT_EQ(feed.poll(now)->fetch.late, 7U);
  feed.begin(2, Generation{5});
  EXPECT_FALSE(feed.gives_back()) << "of a phase that is over";
}

TEST_F(ShardFeedTest, SkippedRecordsAreSaidUntilThatIsAnswered) {
  fill(125);
  EXPECT_EQ(feed.take(30).records, 30U);
  feed.skip({{12, 14, "torn"}, {20, 21, "long"}});
  EXPECT_TRUE(feed.tells_skips());
  EXPECT_EQ(feed.deadline(), MonoTime::min());
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  ASSERT_EQ(request->fetch.skipped.size(), 2U);
  EXPECT_EQ(request->fetch.skipped[0], (wire::SkippedRecords{12, 14, "torn"}));
  feed.skip({{25, 26, "torn"}});
  const auto again = feed.poll(now + ShardFeed::kRepeatAfter);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->seq, request->seq);
  EXPECT_EQ(again->fetch.skipped.size(), 2U);
  feed.on_grants(request->seq, granted({}), now);
  EXPECT_TRUE(feed.tells_skips()) << "the third came too late for the request";
  const auto last = feed.poll(now);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->fetch.skipped.size(), 1U);
  feed.on_grants(last->seq, granted({}), now);
  EXPECT_FALSE(feed.tells_skips());
  feed.skip({{26, 27, "torn"}});
  feed.begin(2, Generation{5});
  EXPECT_FALSE(feed.tells_skips()) << "of a phase that is over";
}

TEST_F(ShardFeedTest, ManySkipsTakeSeveralRequests) {
  fill(125);
  EXPECT_EQ(feed.take(30).records, 30U);
  std::vector<wire::SkippedRecords> skips(wire::Fetch::kMaxSkipped + 1, {3, 4, "torn"});
  feed.skip(skips);
  const auto first = feed.poll(now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->fetch.skipped.size(), wire::Fetch::kMaxSkipped);
  feed.on_grants(first->seq, granted({}), now);
  EXPECT_EQ(feed.poll(now)->fetch.skipped.size(), 1U);
}

TEST_F(ShardFeedTest, SkippedRecordsAreCommittedNoEarlierThanTheyAreSaid) {
  fill(125);
  EXPECT_EQ(feed.take(30).records, 30U);
  std::vector<wire::SkippedRecords> skips(wire::Fetch::kMaxSkipped + 1, {3, 4, "torn"});
  feed.skip(skips);
  feed.commit(30, std::nullopt, now);
  const auto first = feed.poll(now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->fetch.place, 0U);
  feed.on_grants(first->seq, granted({}), now);
  EXPECT_EQ(feed.poll(now)->fetch.place, 30U);
}

TEST_F(ShardFeedTest, ARecallCutsWhatWasNotTaken) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({piece(0, 0, 50), piece(1, 0, 75)}), now);
  EXPECT_EQ(feed.take(20).records, 20U);
  const auto recalled = feed.on_recall(Generation{4}, 1, {1, 60});
  ASSERT_TRUE(recalled);
  EXPECT_EQ(recalled->records, 65U);
  EXPECT_EQ(feed.in_hand(), 40U);
  const Taken rest = feed.take(1000);
  EXPECT_EQ(rest.records, 40U);
  EXPECT_EQ(rest.pieces.back().shard, 1U);
  EXPECT_EQ(rest.pieces.back().to, 10U);
}

TEST_F(ShardFeedTest, ARecallNeverCutsWhatWasTakenAndRepeatsItsAnswer) {
  fill(125);
  EXPECT_EQ(feed.take(70).records, 70U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 60})->records, 55U);
  EXPECT_EQ(feed.in_hand(), 0U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 60})->records, 55U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 2, {1, 500})->records, 0U);
}

TEST_F(ShardFeedTest, ARecallThatComesAgainDoesNotTakeBackWhatWasGrantedAfterItsAnswer) {
  fill(125);
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 50})->records, 75U);
  fill(20);
  ASSERT_EQ(feed.in_hand(), 70U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 50})->records, 75U) << "the same answer";
  EXPECT_EQ(feed.in_hand(), 70U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 2, {1, 60})->records, 10U);
  EXPECT_FALSE(feed.on_recall(Generation{4}, 1, {1, 50})) << "answered long ago";
  EXPECT_EQ(feed.in_hand(), 60U);
}

TEST_F(ShardFeedTest, ARecallThatIsOverIsNotObeyedWhenItComesLate) {
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  wire::Grants grants = granted({piece(0, 0, 50)});
  grants.recalls_over = 3;
  feed.on_grants(request->seq, grants, now);
  while (const auto more = feed.poll(now)) feed.on_grants(more->seq, granted({}), now);
  ASSERT_EQ(feed.in_hand(), 50U);
  EXPECT_FALSE(feed.on_recall(Generation{4}, 3, {1, 0})) << "what came since is not in its account";
  EXPECT_EQ(feed.in_hand(), 50U);
  EXPECT_EQ(feed.on_recall(Generation{4}, 4, {1, 0})->records, 50U);
}

TEST_F(ShardFeedTest, ARecallIsNotAnsweredWhileAnAnswerMayBringMore) {
  const auto request = feed.poll(now);
  ASSERT_TRUE(request);
  EXPECT_FALSE(feed.on_recall(Generation{4}, 1, {1, 0}));
  feed.on_grants(request->seq, granted({piece(0, 0, 50)}), now);
  while (const auto more = feed.poll(now))
    feed.on_grants(more->seq, granted({piece(0, 0, 50)}), now);
  const std::uint64_t in_hand = feed.in_hand();
  EXPECT_EQ(feed.on_recall(Generation{4}, 1, {1, 0})->records, in_hand);
}

TEST_F(ShardFeedTest, ARecallOfAnotherPhaseOrGenerationIsNotAnswered) {
  fill(125);
  EXPECT_FALSE(feed.on_recall(Generation{4}, 1, {2, 0}));
  EXPECT_FALSE(feed.on_recall(Generation{3}, 1, {1, 0}));
  EXPECT_EQ(feed.in_hand(), 125U);
}

TEST_F(ShardFeedTest, APieceThatCannotBeIsAProblemAndNotTaken) {
  const auto request = feed.poll(now);
  feed.on_grants(request->seq, granted({{0, 0, 10, 5, 20, 0, false}}), now);
  EXPECT_EQ(feed.in_hand(), 0U);
  EXPECT_NE(feed.problem(), "");
}

TEST_F(ShardFeedTest, WithoutAHoldNothingIsFetched) {
  ShardFeed idle;
  idle.begin(1, Generation{1});
  EXPECT_FALSE(idle.poll(now));
}

}  // namespace
}  // namespace antdt::client
