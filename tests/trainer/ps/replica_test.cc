// Tests of servers with two processes each: whichever is lost, at any time, every push is in the
// model once, and no lost change was reported to a worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/wire/codec.h"
#include "tests/sanitized.h"
#include "tests/trainer/ps/replica_cluster.h"
#include "tests/trainer/ps/stepped.h"

namespace antdt::ps::replica_test {
namespace {

constexpr std::uint64_t kSeeds = all_or_some(150U, 25U);

class ReplicaTest : public ::testing::TestWithParam<Consistency> {
 protected:
  template <class F>
  void train(std::uint64_t seed, F fault) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(GetParam(), seed);
    const std::uint32_t when = cluster.below(400);
    for (std::uint32_t n = 0; !cluster.done(); ++n) {
      ASSERT_LT(n, 100'000U) << "nothing moves any more";
      if (n == when) fault(cluster);
      if (!cluster.deliver() || cluster.below(200) == 0) cluster.tick();
    }
    for (int n = 0; n < 4; ++n) {
      cluster.tick();
      while (cluster.deliver()) {
      }
    }
    cluster.expect_exact();
  }
};

TEST_P(ReplicaTest, ALostPrimaryCostsNoPush) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) { cluster.lose(cluster.below(kReplicaSets), true); });
  }
}

TEST_P(ReplicaTest, ALostBackupCostsNoPush) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) { cluster.lose(cluster.below(kReplicaSets), false); });
  }
}

TEST_P(ReplicaTest, OneOfEachServerMayBeLost) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) {
      for (std::uint32_t set = 0; set < kReplicaSets; ++set) {
        cluster.lose(set, cluster.below(2) == 0);
      }
    });
  }
}

TEST_P(ReplicaTest, APrimaryThatWasReplacedAndDoesNotKnowItIsHeardByNobody) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) { cluster.replace(cluster.below(kReplicaSets)); });
  }
}

INSTANTIATE_TEST_SUITE_P(Consistencies, ReplicaTest,
                         ::testing::Values(Consistency::kBarrier, Consistency::kUnbounded));

// ------------------------------------------------------------- one of the two alone

// Server 0 of two, home of w0, which has opened its table.
node::Start first_of_two() {
  node::Start start;
  start.servers = kReplicaSets;
  start.consistency = Consistency::kUnbounded;
  return start;
}
node::Input said(node::Request request) {
  return node::RequestHeard{{"w0", w(0), 1}, Generation{1}, std::move(request)};
}
node::Input serve(std::uint64_t number) {
  wire::PsServe serve;
  serve.number = number;
  serve.workers = {{w(0).worker, w(0).attempt}};
  return node::ServeOrdered{serve};
}
// The messages of w0 until its first push is decided.
std::vector<node::Input> first_push() {
  const wire::PsOpen tables{7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}};
  const wire::PsRows rows{0, to_bytes(std::vector{std::uint64_t{1}}), to_bytes(std::vector{1.0F})};
  return {serve(1), said(tables), said(wire::PsPush{1, 0, {rows}}),
          said(wire::PsCommit{1, 0, 1, 0, 1, 1.0})};
}
template <class T>
std::vector<T> of_node(const replica::Effects& effects) {
  std::vector<T> found;
  for (const replica::Effect& effect : effects) {
    const auto* e = std::get_if<node::Effect>(&effect);
    if (e != nullptr && std::holds_alternative<T>(*e)) found.push_back(std::get<T>(*e));
  }
  return found;
}
template <class T>
std::vector<T> of_pair(const replica::Effects& effects) {
  std::vector<T> found;
  for (const replica::Effect& effect : effects) {
    if (const T* e = std::get_if<T>(&effect)) found.push_back(*e);
  }
  return found;
}

TEST(ReplicaPairTest, NothingIsSentBeforeTheBackupHasTakenItInThisView) {
  Replica primary(first_of_two(), replica::Role::kPrimary, 5);
  const auto said = stepped(primary, serve(1));
  ASSERT_EQ(of_pair<replica::EventCopied>(said).size(), 1U);
  EXPECT_TRUE(of_node<node::AnswerServe>(said).empty());
  for (const std::uint64_t other_view : {4U, 6U}) {
    EXPECT_TRUE(stepped(primary, replica::CopiesTaken{other_view, 1}).empty())
        << "view " << other_view;
  }
  EXPECT_TRUE(stepped(primary, replica::CopiesTaken{5, 2}).empty()) << "it has not said so much";
  EXPECT_EQ(of_node<node::AnswerServe>(stepped(primary, replica::CopiesTaken{5, 1})).size(), 1U);
}

// A primary and its backup, with the table of w0 open in both. The test carries what is between
// them.
class PrimaryAndBackup {
 public:
  PrimaryAndBackup() {
    tell(serve(1));
    ask(wire::PsOpen{7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}});
    deliver();
  }
  // A request of w0 with a number of its own, or the one before again.
  void ask(node::Request request, bool again = false, const std::string& peer = "w0") {
    if (!again) ++seq_;
    tell(node::RequestHeard{{peer, w(0), seq_}, Generation{1}, std::move(request)});
  }
  void tick() { tell(node::TimePassed{}); }
  // The backup takes all that is on its way, and the primary what it answers.
  void deliver() {
    while (!copies.empty()) {
      for (const auto& event : std::exchange(copies, {})) {
        for (const auto& taken : of_pair<replica::CopiesTaken>(stepped(backup, event))) {
          take(stepped(primary, taken));
        }
      }
    }
  }
  [[nodiscard]] std::uint64_t copied_bytes() const {
    std::uint64_t bytes = 0;
    for (const replica::EventCopied& event : copies) bytes += to_wire(event).body.size();
    return bytes;
  }

  Replica primary{first_of_two(), replica::Role::kPrimary, 5};
  Replica backup{first_of_two(), replica::Role::kBackup, 5};
  std::vector<replica::EventCopied> copies;
  std::vector<ReplyTo> replies;

 private:
  void tell(const node::Input& input) { take(stepped(primary, input)); }
  void take(const replica::Effects& effects) {
    std::ranges::move(of_pair<replica::EventCopied>(effects), std::back_inserter(copies));
    std::ranges::move(of_node<ReplyTo>(effects), std::back_inserter(replies));
  }
  std::uint64_t seq_ = 0;
};

wire::PsPush large_push(std::uint64_t number) {
  std::vector<std::uint64_t> keys(10'000);
  std::iota(keys.begin(), keys.end(), std::uint64_t{1});
  return {
      number, 0, {{0, to_bytes(keys), to_bytes(std::vector<float>(keys.size(), float(number)))}}};
}

TEST(ReplicaPairTest, WhatWaitsForABackupThatStandsStillIsBoundedHoweverOftenWorkersAskAgain) {
  PrimaryAndBackup pair;
  pair.replies.clear();
  for (std::uint64_t number = 1; number <= 8; ++number) {
    pair.ask(large_push(number));
    for (int i = 0; i < 8; ++i) {
      pair.tick();
      pair.ask(large_push(number), true);
      pair.ask(large_push(number), true, "w0 after its link broke");
    }
  }
  const std::uint64_t one = to_wire({5, 1, said(large_push(1))}).body.size();
  EXPECT_LT(pair.copied_bytes(), 9 * one) << "each push was sent once";
  EXPECT_TRUE(pair.replies.empty());
  pair.deliver();
  EXPECT_FALSE(pair.primary.is_ahead());
  const auto answered = std::ranges::count_if(
      pair.replies, [](const ReplyTo& reply) { return reply.to.peer == "w0"; });
  EXPECT_EQ(answered, 8) << "one answer to each request";
}

TEST(ReplicaPairTest, RowsThatWorkersPullAgainAreHeldOnceForABackupThatStandsStill) {
  PrimaryAndBackup pair;
  pair.ask(large_push(1));
  pair.replies.clear();
  const wire::PsPull pull{0, {{0, to_bytes(std::vector<std::uint64_t>{1}), {}}}};
  pair.ask(pull);
  for (int i = 0; i < 20; ++i) pair.ask(pull, true);
  pair.deliver();
  EXPECT_EQ(std::ranges::count_if(pair.replies,
                                  [](const ReplyTo& reply) {
                                    return std::holds_alternative<wire::PsPulled>(reply.body);
                                  }),
            1);
  pair.ask(pull, true);
  EXPECT_TRUE(std::holds_alternative<wire::PsPulled>(pair.replies.back().body))
      << "that answer was lost";
}

TEST(ReplicaPairTest, CopiesThatWereLostAreSentAgainOnceTheBackupSaysHowFarItIs) {
  PrimaryAndBackup pair;
  for (std::uint64_t number = 1; number <= 4; ++number) pair.ask(large_push(number));
  pair.copies.resize(1);  // the link broke
  pair.deliver();
  EXPECT_TRUE(pair.primary.is_ahead());
  for (int i = 0; i < 2; ++i) pair.tick();
  ASSERT_EQ(pair.copies.size(), 1U);
  EXPECT_LT(pair.copied_bytes(), 1000U) << "the question, and no push";
  pair.deliver();
  EXPECT_FALSE(pair.primary.is_ahead());
}

TEST(ReplicaPairTest, ABackupThatIsSlowIsNotSentTheSameAgain) {
  PrimaryAndBackup pair;
  for (std::uint64_t number = 1; number <= 4; ++number) pair.ask(large_push(number));
  for (int i = 0; i < 10; ++i) pair.tick();
  const auto on_their_way = std::exchange(pair.copies, {});
  for (const auto& event : on_their_way) {
    pair.copies = {event};
    pair.deliver();
    EXPECT_TRUE(pair.copies.empty());
  }
  EXPECT_FALSE(pair.primary.is_ahead());
}

TEST(ReplicaPairTest, NoMoreIsSentThanTheBytesThatMayBeUnderWay) {
  PrimaryAndBackup pair;
  const wire::PsPut put{{{0, {}, std::string(Replica::kMostUnderWay / 4, 'x')}}};
  for (int i = 0; i < 5; ++i) pair.ask(put);
  EXPECT_EQ(pair.copies.size(), 4U);
  pair.deliver();
  EXPECT_FALSE(pair.primary.is_ahead());
}

TEST(ReplicaPairTest, ABackupTakesNothingOfAnotherView) {
  Replica backup(first_of_two(), replica::Role::kBackup, 5);
  for (const std::uint64_t other_view : {4U, 6U}) {
    EXPECT_TRUE(stepped(backup, replica::EventCopied{other_view, 1, serve(1)}).empty());
  }
  const auto taken =
      of_pair<replica::CopiesTaken>(stepped(backup, replica::EventCopied{5, 1, serve(1)}));
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].number, 1U);
}

TEST(ReplicaPairTest, ABackupWhosePrimaryCopiesWhatCannotFollowEndsWithWhy) {
  for (const node::Input& event :
       std::vector<node::Input>{node::SlicesRead{}, node::WritingBegun{1, 0, {}}}) {
    Replica backup(first_of_two(), replica::Role::kBackup, 5);
    const auto broken =
        of_pair<replica::BreakUp>(stepped(backup, replica::EventCopied{5, 1, event}));
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_NE(broken[0].error.find("cannot follow"), std::string::npos);
  }
}

TEST(ReplicaPairTest, ABackupThatCannotReadWhatItsPrimaryCouldSaysWhetherItWasTheDisk) {
  for (const auto refusal : {wire::RefusalCode::kIo, wire::RefusalCode::kCorrupt}) {
    node::Start start = first_of_two();
    start.restore = "c4";
    Replica backup(start, replica::Role::kBackup, 5);
    const auto events = first_push();
    std::ignore = stepped(backup, replica::EventCopied{5, 1, events[0]});
    ASSERT_EQ(
        of_node<node::ReadSlices>(stepped(backup, replica::EventCopied{5, 2, events[1]})).size(),
        1U);
    std::ignore = stepped(backup, node::Input(node::SlicesRead{"no", refusal}));
    const auto broken =
        of_pair<replica::BreakUp>(stepped(backup, replica::EventCopied{5, 3, node::SlicesRead{}}));
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_EQ(broken[0].unread, refusal == wire::RefusalCode::kIo);
  }
}

TEST(ReplicaPairTest, EachResultOfReadingIsCopiedWithWhatTheWorkerIsTold) {
  for (const auto refusal : {wire::RefusalCode::kIo, wire::RefusalCode::kCorrupt}) {
    const auto copied = from_wire(to_wire({4, 9, node::SlicesRead{"no", refusal}}), Generation{1});
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(std::get<node::SlicesRead>(copied->input).refusal, refusal);
  }
}

TEST(ReplicaPairTest, CheckpointsOfAPrimaryThatWritesThemAllAtOnceAreForgottenInTheirOrder) {
  node::Start start = first_of_two();
  start.consistency = Consistency::kBarrier;
  Replica backup(start, replica::Role::kBackup, 5);
  std::uint64_t number = 0;
  const auto copy = [&](const node::Input& event) {
    std::ignore = stepped(backup, replica::EventCopied{5, ++number, event});
  };
  for (const node::Input& event : first_push()) copy(event);
  for (std::uint64_t cut = 1; cut <= 2 * CutOrders::kKept; ++cut) {
    copy(node::SlicesOrdered{{cut, "dir"}});
    copy(node::WritingBegun{cut, 0, {}});
  }
  EXPECT_EQ(backup.node().writing().size(), CutOrders::kKept);
}

TEST(ReplicaPairTest, APromotedBackupRepeatsUnacknowledgedMessages) {
  Replica backup(first_of_two(), replica::Role::kBackup, 1);
  std::uint64_t number = 0;
  for (const node::Input& event : first_push()) {
    const auto effects = stepped(backup, replica::EventCopied{1, ++number, event});
    EXPECT_TRUE(of_node<node::TellServer>(effects).empty());
    EXPECT_TRUE(of_node<ReplyTo>(effects).empty());
  }
  const auto told = of_node<node::TellServer>(stepped(backup, replica::BecameAlone{2}));
  ASSERT_FALSE(told.empty()) << "saying it twice does no harm";
  for (const node::TellServer& tell : told) EXPECT_EQ(tell.decision.pushes.size(), 1U);
  EXPECT_EQ(backup.role(), replica::Role::kAlone);
  EXPECT_TRUE(stepped(backup, replica::EventCopied{1, ++number, serve(2)}).empty())
      << "its primary of before counts no more";
  // And answers as the primary would have.
  const auto again = of_node<ReplyTo>(stepped(backup, first_push().back()));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<wire::PsDecided>(again[0].body).status, wire::PsFate::kApplied);
}

TEST(ReplicaPairTest, ChecksOfAnEarlierViewDoNotPromoteAndAPromotionIsOnce) {
  Replica backup(first_of_two(), replica::Role::kBackup, 3);
  EXPECT_TRUE(stepped(backup, replica::BecameAlone{3}).empty());
  EXPECT_EQ(backup.role(), replica::Role::kBackup);
  std::ignore = stepped(backup, replica::BecameAlone{4});
  EXPECT_EQ(backup.role(), replica::Role::kAlone);
}

TEST(ReplicaPairTest, CheckpointsThatAPrimaryHadBegunFailWithTheNextOnesBehindThem) {
  node::Start start = first_of_two();
  start.servers = 1;
  Replica backup(start, replica::Role::kBackup, 1);
  std::uint64_t number = 0;
  const auto copy = [&](node::Input event) {
    std::ignore = stepped(backup, replica::EventCopied{1, ++number, std::move(event)});
  };
  for (const node::Input& event : first_push()) copy(event);
  copy(node::SlicesOrdered{{1, "one"}});
  copy(node::WritingBegun{1, 10, ""});
  copy(node::SlicesOrdered{{2, "two"}});  // the primary dies while it forks for it
  const auto effects = stepped(backup, replica::BecameAlone{2});
  EXPECT_TRUE(of_node<node::WriteSlices>(effects).empty()) << "nothing is to be written";
  const auto saved = of_node<node::AnswerCut>(effects);
  ASSERT_EQ(saved.size(), 2U);
  for (const node::AnswerCut& one : saved) EXPECT_NE(one.saved.error, "");
  const auto next =
      of_node<node::WriteSlices>(stepped(backup, node::Input(node::SlicesOrdered{{3, "three"}})));
  EXPECT_EQ(next.size(), 1U) << "and the next one is made";
}

TEST(ReplicaPairTest, EveryEventThatIsCopiedIsTheSameAsAMessage) {
  std::vector<node::Input> events = first_push();
  events.insert(
      events.end(),
      {said(wire::PsPut{}), said(wire::PsIdle{3}),
       said(wire::PsDecision{1, 2.0, {{{'w', 0}, Attempt{1}, 4}}, {}, 2, "dir"}),
       node::DecisionsApplied{1, {7}}, node::SlicesOrdered{{3, "dir"}}, node::SlicesRead{"why"},
       node::SlicesRead{"why", wire::RefusalCode::kIo}, node::WritingBegun{3, 12, "no"},
       node::SlicesWritten{3, {{"slice-00.rows", 8, "hash"}}, ""}});
  for (const node::Input& event : events) {
    const wire::PsCopied message = to_wire({4, 9, event});
    const auto copied = from_wire(message, Generation{1});
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(copied->input.index(), event.index());
    EXPECT_EQ(wire::encode(to_wire(*copied)), wire::encode(message)) << message.kind;
  }
  wire::PsCopied unknown = to_wire({4, 9, serve(1)});
  unknown.kind = "ps-nothing";
  EXPECT_FALSE(from_wire(unknown, Generation{1}));
  unknown.kind = "ps-push";
  unknown.body = "no map";
  EXPECT_FALSE(from_wire(unknown, Generation{1}));
}

}  // namespace
}  // namespace antdt::ps::replica_test
