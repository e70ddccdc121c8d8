// A server that has lost one of its two processes gets another one while it serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/codec.h"
#include "tests/sanitized.h"
#include "tests/trainer/ps/replica_cluster.h"
#include "tests/trainer/ps/stepped.h"
#include "trainer/ps/replica/state_copy.h"

namespace antdt::ps::joining_test {
namespace {

class JoiningTest : public ::testing::TestWithParam<Consistency> {
 protected:
  // `meanwhile` is called before each message that arrives.
  template <class F>
  void train(std::uint64_t seed, F meanwhile) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Cluster cluster(GetParam(), seed);
    for (std::uint32_t n = 0; !cluster.done(); ++n) {
      ASSERT_LT(n, 300'000U) << "nothing moves any more";
      meanwhile(cluster);
      if (!cluster.deliver() || cluster.below(100) == 0) cluster.tick();
    }
    for (int n = 0; n < 4; ++n) {
      cluster.tick();
      while (cluster.deliver()) {
      }
    }
    cluster.expect_exact();
  }
};

TEST_P(JoiningTest, OnceItHasABackupItSurvivesTheLossOfTheOtherAgainAndAgain) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= all_or_some(40U, 10U) && !HasFailure(); ++seed) {
    train(seed, [&](Cluster& cluster) {
      const std::uint32_t set = cluster.below(kReplicaSets);
      cluster.start_again(set);
      if (!cluster.backed(set) || cluster.below(40) != 0) return;
      cluster.lose(set, cluster.below(2) == 0);
      ++lost;
    });
  }
  EXPECT_GT(lost, 80) << "some in each run";
}

TEST_P(JoiningTest, AJoiningProcessMayBeLostBeforeItCounts) {
  for (std::uint64_t seed = 1; seed <= all_or_some(40U, 10U) && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) {
      const std::uint32_t set = cluster.below(kReplicaSets);
      if (cluster.backed(set) && cluster.below(30) == 0) cluster.lose(set, true);
      cluster.start_again(set);
      if (cluster.below(60) == 0) cluster.lose_joining(set);
    });
  }
}

TEST_P(JoiningTest, AChildThatIsLostIsReplacedByAnother) {
  for (std::uint64_t seed = 1; seed <= all_or_some(40U, 10U) && !HasFailure(); ++seed) {
    train(seed, [](Cluster& cluster) {
      const std::uint32_t set = cluster.below(kReplicaSets);
      if (cluster.backed(set) && cluster.below(30) == 0) cluster.lose(set, true);
      cluster.start_again(set);
      if (cluster.below(300) == 0) cluster.lose_child(set);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Consistencies, JoiningTest,
                         ::testing::Values(Consistency::kBarrier, Consistency::kUnbounded));

// ------------------------------------------------------------- one of the two alone

template <class T>
std::vector<T> all(const replica::Effects& effects) {
  std::vector<T> found;
  for (const replica::Effect& effect : effects) {
    if (const T* e = std::get_if<T>(&effect)) found.push_back(*e);
  }
  return found;
}

node::Input serve(std::uint64_t number, std::vector<wire::PsMember> leaving = {}) {
  wire::PsServe serve;
  serve.number = number;
  serve.backups = 1;
  for (std::uint32_t i = 0; i < 3; ++i) serve.workers.push_back({w(i).worker, w(i).attempt});
  serve.leaving = std::move(leaving);
  return node::ServeOrdered{serve};
}
node::Input said(std::uint32_t worker, node::Request request) {
  return node::RequestHeard{{"link", w(worker), 1}, Generation{1}, std::move(request)};
}
wire::PsPush push_of(std::uint64_t number) {
  const std::vector<std::uint64_t> keys{number, number + 100, number + 200};
  return {number, 0, {{0, to_bytes(keys), to_bytes(std::vector<float>(6, 0.5F))}}};
}

node::Start start_of(std::uint32_t index = 0) {
  node::Start start;
  start.index = index;
  start.servers = 2;
  start.consistency = Consistency::kUnbounded;
  return start;
}

// A node that has staged, decided, held back behind a cut, lost a worker and begun a checkpoint.
ServerNode busy_node() {
  ServerNode node(start_of());
  const wire::PsDecision theirs{1, 1.0, {{w(1).worker, w(1).attempt, 1}}, {}, 0, ""};
  for (const node::Input& event : std::vector<node::Input>{
           serve(1), said(0, wire::PsOpen{7, {{"t", 2, "adagrad", 0.1, 0, 0, "normal", 0.3}}}),
           said(0, push_of(1)), said(0, push_of(2)), said(2, push_of(1)),
           said(0, wire::PsCommit{1, 0, 1, 0, 5, 2.0}), said(1, push_of(1)),
           node::RequestHeard{{"s1", {WorkerId{'s', 1}, Attempt{}}, 1}, Generation{1}, theirs},
           node::SlicesOrdered{{1, "dir"}}, said(0, wire::PsCommit{2, 1, 1, 7, 9, 1.0}),
           said(1, wire::PsIdle{9}), serve(2, {{w(2).worker, w(2).attempt}}),
           node::DecisionsApplied{1, {1}}}) {
    std::ignore = stepped(node, event);
  }
  return node;
}
std::vector<wire::PsImage> pieces_of(const ServerNode& node) {
  std::vector<wire::PsImage> pieces;
  write_state(node, [&](const StatePiece& p) {
    pieces.push_back({1, 1, 1, pieces.size() + 1, p.part, p.bytes, p.last});
  });
  return pieces;
}
Status read(ServerNode& node, const std::vector<wire::PsImage>& pieces) {
  StateReader reader;
  for (const wire::PsImage& piece : pieces) ANTDT_RETURN_IF_ERROR(reader.take(node, piece));
  return {};
}

TEST(StateCopyTest, TheCopyIsTheSameMachineWithTheSameRows) {
  const ServerNode node = busy_node();
  const NodeImage image = node.image();
  ASSERT_FALSE(image.distribution.decisions.empty());
  ASSERT_FALSE(image.closer.revoked.empty());
  ASSERT_FALSE(image.cuts.cuts.empty());
  ASSERT_EQ(image.server.newest_cut, 1U);
  ServerNode copy(start_of());
  const Status copied = read(copy, pieces_of(node));
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(wire::encode(copy.image()), wire::encode(image));
  EXPECT_EQ(copy.store()->rows(), node.store()->rows());
  const std::vector<std::uint64_t> keys{1, 101, 201};
  std::vector<float> theirs(6), ours(6);
  ServerNode original = busy_node();
  original.store()->read(0, keys, reinterpret_cast<char*>(theirs.data()));
  copy.store()->read(0, keys, reinterpret_cast<char*>(ours.data()));
  EXPECT_EQ(ours, theirs);
}

TEST(StateCopyTest, BothCopiesGoOnInTheSameWay) {
  ServerNode node = busy_node();
  ServerNode copy(start_of());
  ASSERT_TRUE(read(copy, pieces_of(node)));
  const wire::PsDecision marker{2, 0, {}, {}, 1, "dir"};
  const std::vector<node::Input> events{
      node::RequestHeard{{"s1", {WorkerId{'s', 1}, Attempt{}}, 2}, Generation{1}, marker},
      node::WritingBegun{1, 5, ""},
      said(0, push_of(3)),
      said(0, wire::PsCommit{3, 1, 1, 9, 12, 1.0}),
      node::SlicesWritten{1, {{"slice-00.rows", 8, "hash"}}, ""},
      node::DecisionsApplied{1, {3}}};
  for (const node::Input& event : events) {
    EXPECT_EQ(stepped(copy, event).empty(), stepped(node, event).empty());
    EXPECT_EQ(wire::encode(copy.image()), wire::encode(node.image()));
  }
}

TEST(StateCopyTest, AServerThatNobodyOpenedHasOnePart) {
  const ServerNode fresh(start_of());
  const auto pieces = pieces_of(fresh);
  EXPECT_EQ(pieces.back().part, 0U);
  ServerNode copy(start_of());
  EXPECT_TRUE(read(copy, pieces));
  EXPECT_EQ(copy.store(), nullptr);
}

TEST(StateCopyTest, PiecesThatCannotBeAreRefused) {
  const ServerNode node = busy_node();
  const auto whole = pieces_of(node);
  const auto refused = [&](auto spoil) {
    std::vector<wire::PsImage> pieces = whole;
    spoil(pieces);
    ServerNode copy(start_of());
    return !read(copy, pieces);
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& p) { p.erase(p.begin()); })) << "rows without tables";
  EXPECT_TRUE(refused([](auto& p) { std::swap(p[1], p[2]); })) << "parts do not rise";
  EXPECT_TRUE(refused([](auto& p) { std::swap(p[1].part, p[2].part); }));
  EXPECT_TRUE(refused([](auto& p) { p[0].bytes.resize(p[0].bytes.size() / 2); }));
  EXPECT_TRUE(refused([](auto& p) { p[1].bytes.resize(p[1].bytes.size() - 1); }));
  EXPECT_TRUE(refused([](auto& p) { p[1].bytes.resize(kStatePiece + 1); }));
  EXPECT_TRUE(refused([](auto& p) { p.back().part = kSlices + 1; })) << "a slice that is none";
}

TEST(StateCopyTest, AMachineThatCannotBeIsRefused) {
  const auto refused = [](auto spoil) {
    NodeImage image = busy_node().image();
    spoil(image);
    ServerNode copy(start_of());
    return !copy.restore(image);
  };
  EXPECT_FALSE(refused([](NodeImage&) {}));
  EXPECT_TRUE(refused([](NodeImage& i) { i.server.homes[0].home = 2; }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.server.open->tables[0].rule = "magic"; }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.server.open.reset(); })) << "what is staged";
  EXPECT_TRUE(refused([](NodeImage& i) { i.server.workers[0].staged[0].rows[0].table = 1; }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.distribution.decisions[0].number = 9; }));
  EXPECT_TRUE(refused([](NodeImage& i) { ++i.closer.decisions; })) << "not what it applied";
  EXPECT_TRUE(refused([](NodeImage& i) { i.distribution.decisions.pop_back(); }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.distribution.peers[0].server = 0; }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.closer.workers[0].places.applied = {{5, 2}}; }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.cuts.cuts.resize(CutOrders::kKept + 1); }));
  EXPECT_TRUE(refused([](NodeImage& i) { i.closer.revoked.push_back(i.closer.workers[0].places); }))
      << "who left is not there";
}

TEST(JoiningPairTest, AProcessWithHalfOfTheStateIsNeverPromoted) {
  for (const replica::Input& next :
       std::vector<replica::Input>{replica::BecameAlone{6}, replica::BackupJoined{6}}) {
    Replica joins(start_of(), replica::Role::kJoining, 5);
    wire::PsImage first = pieces_of(busy_node())[0];
    first.view = 5;
    EXPECT_EQ(all<replica::CopiesTaken>(stepped(joins, first)).size(), 1U);
    EXPECT_EQ(all<replica::BreakUp>(stepped(joins, next)).size(), 1U);
    EXPECT_FALSE(joins.speaks());
  }
}

TEST(JoiningPairTest, PiecesOfAnotherViewAndOfAnEarlierImageChangeNothing) {
  Replica joins(start_of(), replica::Role::kJoining, 5);
  const auto piece = [](std::uint64_t view, std::uint64_t image, std::uint64_t number) {
    wire::PsImage of = pieces_of(busy_node())[number - 1];
    of.view = view;
    of.image = image;
    return of;
  };
  EXPECT_TRUE(stepped(joins, piece(4, 1, 1)).empty());
  EXPECT_TRUE(stepped(joins, piece(6, 1, 1)).empty());
  EXPECT_TRUE(stepped(joins, piece(5, 2, 2)).empty()) << "its beginning is not here";
  EXPECT_EQ(all<replica::CopiesTaken>(stepped(joins, piece(5, 2, 1)))[0].pieces, 1U);
  EXPECT_TRUE(stepped(joins, piece(5, 1, 1)).empty());
  EXPECT_EQ(all<replica::CopiesTaken>(stepped(joins, piece(5, 2, 1)))[0].pieces, 1U)
      << "said again";
  EXPECT_EQ(all<replica::CopiesTaken>(stepped(joins, piece(5, 2, 3)))[0].pieces, 1U)
      << "one is missing";
  EXPECT_EQ(all<replica::CopiesTaken>(stepped(joins, piece(5, 2, 2)))[0].pieces, 2U);
  EXPECT_TRUE(stepped(joins, replica::EventCopied{5, 1, serve(1)}).empty())
      << "not before all is here";
}

TEST(JoiningPairTest, ItIsSentTheRowsAndNotToldToReadTheCheckpoint) {
  node::Start start = start_of();
  start.restore = "a checkpoint that is not on the host of the process that joins";
  Replica primary(start, replica::Role::kAlone, 1);
  std::ignore = stepped(primary, serve(1));
  EXPECT_TRUE(all<replica::KeepState>(stepped(primary, replica::BackupJoined{2})).empty());
  const auto tick = node::Input(node::TimePassed{});
  EXPECT_TRUE(all<replica::KeepState>(stepped(primary, tick)).empty());
  const auto open = said(0, wire::PsOpen{7, {{"t", 2, "adagrad", 0.1, 0, 0, "normal", 0.3}}});
  auto effects = stepped(primary, open);
  ASSERT_EQ(all<node::Effect>(effects).size(), 1U);
  ASSERT_TRUE(std::holds_alternative<node::ReadSlices>(all<node::Effect>(effects)[0]));
  EXPECT_TRUE(stepped(primary, replica::CopiesTaken{2, 1, 0, 0}).empty()) << "of no image";
  effects = stepped(primary, node::Input(node::SlicesRead{}));
  EXPECT_TRUE(all<replica::EventCopied>(effects).empty());
  EXPECT_EQ(all<replica::KeepState>(stepped(primary, tick)).size(), 1U);
  EXPECT_TRUE(all<replica::KeepState>(stepped(primary, tick)).empty()) << "one is enough";
}

TEST(JoiningPairTest, NobodyWaitsForAJoiningProcess) {
  Replica primary(start_of(), replica::Role::kAlone, 1);
  std::ignore = stepped(primary, serve(1));
  EXPECT_EQ(all<replica::KeepState>(stepped(primary, replica::BackupJoined{2})).size(), 1U);
  const auto effects = stepped(primary, serve(2));
  EXPECT_TRUE(all<replica::EventCopied>(effects).empty()) << "the image comes first";
  const auto said = all<node::Effect>(effects);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(std::get<node::AnswerServe>(said[0]).serving.backed, 0U);
}

TEST(JoiningPairTest, ItHoldsWhatItSaysFromTheMomentThatTheImageIsTakenAndIsBackedWhenAllIsTaken) {
  Replica primary(start_of(), replica::Role::kAlone, 1);
  std::ignore = stepped(primary, serve(1));
  std::ignore = stepped(primary, replica::BackupJoined{2});
  const auto said = stepped(primary, replica::PieceMade{1, {0, "all of it", true}, ""});
  ASSERT_EQ(all<wire::PsImage>(said).size(), 1U);
  EXPECT_EQ(all<wire::PsImage>(said)[0].number, 1U);
  std::ignore = stepped(primary, serve(2));  // behind the image
  const auto copied = stepped(primary, replica::CopiesTaken{2, 1, 1, 1});
  ASSERT_EQ(all<replica::EventCopied>(copied).size(), 1U);
  EXPECT_FALSE(primary.backed()) << "what was said of event 2 is not there";
  EXPECT_TRUE(all<node::Effect>(stepped(primary, serve(3))).empty()) << "it is held";
  EXPECT_TRUE(all<node::Effect>(stepped(primary, replica::CopiesTaken{2, 2})).empty());
  EXPECT_TRUE(primary.backed());
  const auto let_go = all<node::Effect>(stepped(primary, replica::CopiesTaken{2, 3}));
  ASSERT_EQ(let_go.size(), 1U);
  EXPECT_EQ(std::get<node::AnswerServe>(let_go[0]).serving.backed, 2U);
}

// A server of which a process that joins has taken the image, and nothing of `meanwhile` so far.
Replica with_image_taken(const std::vector<node::Input>& meanwhile, std::uint64_t most_behind) {
  Replica primary(start_of(), replica::Role::kAlone, 1, most_behind);
  std::ignore = stepped(primary, serve(1));
  std::ignore = stepped(primary, replica::BackupJoined{2});
  std::ignore = stepped(primary, replica::PieceMade{1, {0, "all of it", true}, ""});
  for (const node::Input& event : meanwhile) std::ignore = stepped(primary, event);
  std::ignore = stepped(primary, replica::CopiesTaken{2, 1, 1, 1});
  return primary;
}

TEST(JoiningPairTest, PushesThatArriveFasterThanItTakesThemWaitForItOnceItHasTheImage) {
  const wire::PsPut large{{{0, {}, std::string(Replica::kMostUnderWay / 4, 'x')}}};
  Replica primary = with_image_taken(std::vector(5, said(0, large)), Replica::kMostBehind);
  // For each event that it takes, another large one arrives.
  std::uint64_t taken = 1;
  for (; taken < 6 && !primary.backed(); ++taken) {
    const auto arrived =
        stepped(primary, node::RequestHeard{{"link", w(0), taken + 1}, Generation{1}, large});
    EXPECT_TRUE(all<node::Effect>(arrived).empty()) << "its answer is held";
    const auto sent =
        all<replica::EventCopied>(stepped(primary, replica::CopiesTaken{2, taken + 1}));
    EXPECT_LE(sent.size(), 1U) << "more than kMostUnderWay is not sent at once";
  }
  EXPECT_TRUE(primary.backed());
}

TEST(JoiningPairTest, OneThatHasTheImageAndFallsTooFarBehindGetsNoOtherImageAndIsWaitedFor) {
  std::vector<node::Input> meanwhile;
  for (std::uint64_t n = 2; n <= Replica::kAhead + 3; ++n) meanwhile.push_back(serve(n));
  Replica primary = with_image_taken(meanwhile, 1000);
  EXPECT_FALSE(all<node::Effect>(stepped(primary, serve(Replica::kAhead + 4))).empty())
      << "nobody waits for a process that lacks so many";
  const auto ticked = stepped(primary, node::Input(node::TimePassed{}));
  EXPECT_TRUE(all<replica::KeepState>(ticked).empty());
  EXPECT_TRUE(all<node::Effect>(stepped(primary, serve(Replica::kAhead + 5))).empty())
      << "it is held";
  std::ignore = stepped(primary, replica::CopiesTaken{2, Replica::kAhead + 1});
  std::ignore = stepped(primary, replica::CopiesTaken{2, Replica::kAhead + 4});
  EXPECT_TRUE(primary.backed());
}

TEST(JoiningPairTest, OneThatHasTheImageAndDoesNotCatchUpIsWaitedFor) {
  std::vector<node::Input> meanwhile;
  for (std::uint64_t n = 2; n <= Replica::kAhead + 3; ++n) meanwhile.push_back(serve(n));
  Replica primary = with_image_taken(meanwhile, Replica::kMostBehind);
  std::ignore = stepped(primary, node::Input(node::TimePassed{}));
  EXPECT_FALSE(all<node::Effect>(stepped(primary, serve(Replica::kAhead + 4))).empty())
      << "it may still catch up by itself";
  std::ignore = stepped(primary, node::Input(node::TimePassed{}));
  EXPECT_TRUE(all<node::Effect>(stepped(primary, serve(Replica::kAhead + 5))).empty())
      << "it is held";
}

TEST(JoiningPairTest, AProcessThatFallsTooFarBehindGetsAnotherImage) {
  Replica primary(start_of(), replica::Role::kAlone, 1, 1000);
  std::ignore = stepped(primary, serve(1));
  std::ignore = stepped(primary, replica::BackupJoined{2});
  std::ignore = stepped(primary, replica::PieceMade{1, {0, "not all", false}, ""});
  EXPECT_TRUE(all<replica::KeepState>(stepped(primary, node::Input(node::TimePassed{}))).empty());
  for (std::uint64_t n = 2; n < 10; ++n) std::ignore = stepped(primary, serve(n));
  const auto kept = all<replica::KeepState>(stepped(primary, node::Input(node::TimePassed{})));
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].image, 2U);
  EXPECT_TRUE(stepped(primary, replica::PieceMade{1, {0, "the rest", true}, ""}).empty());
  EXPECT_TRUE(stepped(primary, replica::CopiesTaken{2, 1, 1, 2}).empty()) << "of the image before";
  const auto again =
      all<wire::PsImage>(stepped(primary, replica::PieceMade{2, {0, "all", true}, ""}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].number, 9U);
  EXPECT_EQ(again[0].piece, 1U);
}

TEST(JoiningPairTest, ABoundedNumberOfPiecesIsUnderWayAndLostOnesAreRepeated) {
  Replica primary(start_of(), replica::Role::kAlone, 1);
  auto effects = stepped(primary, replica::BackupJoined{2});
  std::size_t made = 0;
  while (!all<replica::MakePiece>(effects).empty()) {
    ASSERT_LE(++made, StateSender::kUnderWay);
    effects = stepped(primary, replica::PieceMade{1, {0, "piece", false}, ""});
  }
  EXPECT_EQ(made, StateSender::kUnderWay);
  const auto again = all<wire::PsImage>(stepped(primary, node::Input(node::TimePassed{})));
  EXPECT_EQ(again.size(), StateSender::kUnderWay);
  EXPECT_EQ(all<replica::MakePiece>(stepped(primary, replica::CopiesTaken{2, 0, 1, 3})).size(), 1U);
  EXPECT_TRUE(all<wire::PsImage>(stepped(primary, node::Input(node::TimePassed{}))).empty());
  EXPECT_EQ(all<wire::PsImage>(stepped(primary, node::Input(node::TimePassed{}))).at(0).piece, 4U);
}

}  // namespace
}  // namespace antdt::ps::joining_test
