// Tests of the messages of one server of a group, their receivers, and their repetition.
#include "trainer/ps/server_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "core/wire/packet.h"
#include "tests/trainer/ps/stepped.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps::server_node_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}
Member s(std::uint32_t index) { return {WorkerId{'s', index}, Attempt{}}; }

template <class T>
std::vector<T> all(const node::Effects& effects) {
  std::vector<T> found;
  for (const node::Effect& effect : effects) {
    if (const T* one = std::get_if<T>(&effect)) found.push_back(*one);
  }
  return found;
}
template <class T>
std::vector<T> answers(const node::Effects& effects) {
  std::vector<T> found;
  for (const ReplyTo& reply : all<ReplyTo>(effects)) {
    if (const T* one = std::get_if<T>(&reply.body)) found.push_back(*one);
  }
  return found;
}
// "s1:3": decision 3 is sent to server 1.
std::vector<std::string> told(const node::Effects& effects) {
  std::vector<std::string> said;
  for (const auto& t : all<node::TellServer>(effects)) {
    said.push_back(fmt::format("s{}:{}", t.server, t.decision.number));
  }
  return said;
}

wire::PsOpen tables() { return {7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}}; }
wire::PsRows rows(std::vector<std::uint64_t> keys, std::vector<float> values = {}) {
  return {0, to_bytes(keys), to_bytes(values)};
}

class ServerNodeTest : public ::testing::Test {
 protected:
  static node::Start start(Consistency consistency) {
    node::Start start;
    start.servers = 3;
    start.consistency = consistency;
    start.workers = {w(0), w(1)};
    return start;
  }
  node::Effects step(const node::Input& event) { return stepped(server, event); }
  template <class M>
  node::Effects ask(Member from, const M& m, const std::string& peer = "peer",
                    Generation generation = Generation{1}) {
    return step(node::RequestHeard{{peer, from, ++seq}, generation, m});
  }
  node::Effects commit(Member member, std::uint64_t number, const std::string& peer = "peer") {
    return ask(member, wire::PsCommit{number, 0, 0, number - 1, number, 1}, peer);
  }
  node::Effects order(std::uint64_t number) {
    return step(node::SlicesOrdered{{number, fmt::format("c{}", number)}});
  }
  node::Effects marker(std::uint32_t of, std::uint64_t number, std::uint64_t cut) {
    return ask(s(of), wire::PsDecision{number, 0, {}, {}, cut, fmt::format("c{}", cut)});
  }
  float value(std::uint64_t key) {
    const auto pulled = answers<wire::PsPulled>(ask(w(0), wire::PsPull{0, {rows({key})}}));
    return pulled.empty() ? -1 : floats_from_bytes(pulled.at(0).values.at(0), 1)->at(0);
  }

  ServerNode server{start(Consistency::kUnbounded)};
  std::uint64_t seq = 0;
};

// ------------------------------------------------------------------ decisions

TEST_F(ServerNodeTest, ADecisionIsToldToEveryOtherServerOnce) {
  EXPECT_THAT(told(commit(w(0), 1)), ElementsAre("s1:1", "s2:1"));
  EXPECT_THAT(told(commit(w(0), 2)), ElementsAre("s1:2", "s2:2"));
}

TEST_F(ServerNodeTest, AnUnacknowledgedMessageIsRepeatedAtTheSecondTick) {
  commit(w(0), 1);
  commit(w(0), 2);
  EXPECT_THAT(told(step(node::DecisionsApplied{1, {1}})), IsEmpty());
  EXPECT_THAT(told(step(node::TimePassed{})), ElementsAre("s2:1", "s2:2"))
      << "s1 has acknowledged something: the rest is on its way";
  EXPECT_THAT(told(step(node::TimePassed{})), ElementsAre("s1:2", "s2:1", "s2:2"));
  step(node::DecisionsApplied{1, {2}});
  step(node::DecisionsApplied{2, {2}});
  for (int n = 0; n < 3; ++n) EXPECT_THAT(told(step(node::TimePassed{})), IsEmpty());
}

TEST_F(ServerNodeTest, AMessageThatFoundNoRoomIsSentWithTheNext) {
  commit(w(0), 1);
  EXPECT_THAT(told(step(node::TellUnsent{2, 1})), IsEmpty()) << "there is none yet";
  EXPECT_THAT(told(commit(w(0), 2)), ElementsAre("s1:2", "s2:1", "s2:2"));
}

TEST_F(ServerNodeTest, OnlyAServerOfTheGroupHasDecisions) {
  const wire::PsDecision decision{1, 1, {{WorkerId{'w', 1}, Attempt{1}, 1}}, {}, 0, ""};
  for (const Member from : {w(1), s(0), s(3)}) {
    EXPECT_THAT(answers<wire::Refused>(ask(from, decision)), SizeIs(1))
        << fmt::format("{}", from.worker);
  }
  EXPECT_EQ(server.version(), 0U);
  EXPECT_EQ(answers<wire::PsApplied>(ask(s(1), decision)).at(0).number, 1U);
  EXPECT_EQ(server.version(), 1U);
}

TEST_F(ServerNodeTest, ARepeatedCommitIsAnsweredOnTheLinkOfItsLastCopy) {
  server = ServerNode(start(Consistency::kBarrier));
  commit(w(0), 1, "first");
  EXPECT_THAT(all<ReplyTo>(commit(w(0), 1, "second")), IsEmpty()) << "w1 is waited for";
  const auto replies = all<ReplyTo>(commit(w(1), 1, "other"));
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_EQ(replies[0].to.peer, "second");
  EXPECT_EQ(replies[0].to.seq, 2U);
  EXPECT_EQ(replies[1].to.peer, "other");
}

TEST_F(ServerNodeTest, OnlyItsHomeNamesALeavingWorkerToTheOtherServers) {
  wire::PsServe serve;
  serve.leaving = {{w(0).worker, Attempt{1}}, {w(1).worker, Attempt{1}}};
  const auto effects = step(node::ServeOrdered{serve});
  const auto tell = all<node::TellServer>(effects);
  ASSERT_THAT(tell, SizeIs(2)) << "w1 is of another home";
  EXPECT_EQ(tell[0].decision.left.at(0).worker, w(0).worker);
  EXPECT_THAT(answers<wire::Refused>(commit(w(0), 1)), SizeIs(1));
}

TEST_F(ServerNodeTest, AMessageOfAnotherGenerationChangesNothing) {
  const wire::PsCommit of_old{1, 0, 0, 0, 1, 1};
  const auto refused = answers<wire::Refused>(ask(w(0), of_old, "peer", Generation{2}));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].code, wire::RefusalCode::kStale);
  EXPECT_EQ(server.version(), 0U);
  const node::Unreadable unreadable{{wire::RefusalCode::kInvalid, "it cannot be read"}};
  EXPECT_EQ(answers<wire::Refused>(ask(w(0), unreadable, "peer", Generation{2})).at(0).code,
            wire::RefusalCode::kStale);
  EXPECT_EQ(answers<wire::Refused>(ask(w(0), unreadable)).at(0).code, wire::RefusalCode::kInvalid);
}

// ---------------------------------------------------------------- checkpoints

TEST_F(ServerNodeTest, TheFirstWorkerIsAnsweredWhenTheSlicesAreRead) {
  auto restoring = start(Consistency::kUnbounded);
  restoring.restore = "c4";
  server = ServerNode(restoring);
  auto effects = ask(w(0), tables());
  ASSERT_THAT(effects, SizeIs(1));
  EXPECT_EQ(std::get<node::ReadSlices>(effects[0]).directory, "c4");
  effects = step(node::SlicesRead{"slice-03.rows ends early"});
  EXPECT_THAT(answers<wire::Refused>(effects).at(0).reason, HasSubstr("ends early"));
  EXPECT_EQ(server.store(), nullptr) << "what was read before that is forgotten";

  EXPECT_THAT(all<node::ReadSlices>(ask(w(1), tables())), SizeIs(1))
      << "who asks again has another try";
  effects = step(node::SlicesRead{});
  ASSERT_THAT(all<ReplyTo>(effects), SizeIs(1));
  EXPECT_EQ(all<ReplyTo>(effects)[0].to.member, w(1));
  EXPECT_THAT(answers<wire::PsOpened>(effects), SizeIs(1));
  EXPECT_THAT(answers<wire::PsOpened>(ask(w(0), tables())), SizeIs(1)) << "they are read once";
}

TEST_F(ServerNodeTest, RowsThatAreKeptAreNotReadAndOnlyOpenForTheSameTables) {
  ask(w(0), tables());
  ask(w(0), wire::PsPush{1, 0, {rows({5}, {3})}});
  commit(w(0), 1);
  ASSERT_EQ(value(5), 3);
  auto kept = server.release();
  ASSERT_TRUE(kept);
  auto next = start(Consistency::kUnbounded);
  next.generation = Generation{2};
  next.restore = "c4";
  next.version = 7;
  server = ServerNode(next);
  server.adopt(std::move(*kept));
  auto other = tables();
  other.seed = 8;
  EXPECT_THAT(answers<wire::Refused>(ask(w(1), other, "peer", Generation{2})), SizeIs(1));
  const auto opened = ask(w(1), tables(), "peer", Generation{2});
  EXPECT_THAT(all<node::ReadSlices>(opened), IsEmpty());
  ASSERT_THAT(answers<wire::PsOpened>(opened), SizeIs(1));
  EXPECT_EQ(answers<wire::PsOpened>(opened)[0].version, 7U);
  const auto pulled =
      answers<wire::PsPulled>(ask(w(1), wire::PsPull{0, {rows({5})}}, "peer", Generation{2}));
  ASSERT_THAT(pulled, SizeIs(1));
  EXPECT_EQ(floats_from_bytes(pulled[0].values.at(0), 1)->at(0), 3);
  EXPECT_FALSE(ServerNode(next).release()) << "one that nobody opened has none";
}

TEST_F(ServerNodeTest, ACutIsBegunBeforeAnythingThatWasDecidedAfterIt) {
  ask(w(0), tables());
  ask(w(0), wire::PsPush{1, 0, {rows({5}, {1})}});
  EXPECT_THAT(all<node::WriteSlices>(order(1)), IsEmpty()) << "the others have put no marker";
  commit(w(0), 1);
  EXPECT_EQ(value(5), 0);
  marker(1, 1, 1);
  const auto effects = marker(2, 1, 1);
  ASSERT_FALSE(effects.empty());
  EXPECT_EQ(std::get<node::WriteSlices>(effects.back()).directory, "c1");
  EXPECT_EQ(server.version(), 0U);
  step(node::WritingBegun{1, 34, {}});
  EXPECT_EQ(value(5), 1) << "what waited is applied";

  const auto saved = all<node::AnswerCut>(step(node::SlicesWritten{1, {{"f", 8, {}}}, {}}));
  ASSERT_THAT(saved, SizeIs(1));
  EXPECT_EQ(saved[0].saved.version, 0U);
  EXPECT_EQ(saved[0].saved.pause_us, 34U);
  EXPECT_THAT(saved[0].saved.files, SizeIs(1));
  ASSERT_THAT(saved[0].saved.places, SizeIs(1)) << "of its own workers, at its marker";
  EXPECT_THAT(saved[0].saved.places[0].applied, IsEmpty());
  EXPECT_EQ(all<node::AnswerCut>(order(1)).at(0).saved.pause_us, 34U) << "asked again";
}

TEST_F(ServerNodeTest, AnImpossibleCutIsAnsweredWithTheReason) {
  const auto reason = [](const node::Effects& effects) {
    const auto saved = all<node::AnswerCut>(effects);
    return saved.size() == 1 ? saved[0].saved.error : fmt::format("{} answers", saved.size());
  };
  EXPECT_EQ(reason(order(1)), "no worker has opened a table yet");
  ask(w(0), tables());
  EXPECT_EQ(reason(order(0)), "checkpoints are numbered from 1");
  order(1);
  order(2);
  marker(1, 1, 2);
  EXPECT_EQ(reason(marker(2, 1, 2)), CutOrders::kOvertaken) << "the first one is made nowhere";
  EXPECT_EQ(reason(step(node::WritingBegun{2, 0, "no room on the disk"})), "no room on the disk");
  EXPECT_EQ(reason(order(1)), CutOrders::kOvertaken);
}

TEST_F(ServerNodeTest, ACutThatIsBeingWrittenIsNotForgottenForLaterOnes) {
  ask(w(0), tables());
  const auto make = [&](std::uint64_t cut) {
    order(cut);
    marker(1, cut, cut);
    return marker(2, cut, cut);
  };
  make(1);
  step(node::WritingBegun{1, 34, {}});
  for (std::uint64_t later = 2; later < 4 + CutOrders::kKept; ++later) {
    ASSERT_THAT(all<node::WriteSlices>(make(later)), SizeIs(1));
    step(node::WritingBegun{later, 0, "the one before is still being written"});
  }
  const auto saved = all<node::AnswerCut>(step(node::SlicesWritten{1, {}, {}}));
  EXPECT_EQ(saved.at(0).saved.pause_us, 34U);
}

// ------------------------------------------------------------------- the whole

std::string text_of(const node::Effect& effect) {
  const auto reply = [](const ReplyTo& r) {
    return std::visit(
        [&](const auto& body) {
          return fmt::format("{} {} {}", r.to.seq, body.kKind, wire::encode(body));
        },
        r.body);
  };
  if (const auto* r = std::get_if<ReplyTo>(&effect)) return reply(*r);
  if (const auto* t = std::get_if<node::TellServer>(&effect)) {
    return fmt::format("tell {} {}", t->server, wire::encode(t->decision));
  }
  if (const auto* saved = std::get_if<node::AnswerCut>(&effect)) return wire::encode(saved->saved);
  return fmt::format("effect {}", effect.index());
}

// A second copy of the server needs no more than the events.
TEST_F(ServerNodeTest, TheSameEventsGiveTheSameMessages) {
  for (const Consistency consistency :
       {Consistency::kBarrier, Consistency::kBounded, Consistency::kUnbounded}) {
    ServerNode first(start(consistency));
    ServerNode second(start(consistency));
    std::mt19937_64 random(static_cast<std::uint64_t>(consistency) + 1);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::map<Member, std::uint64_t> numbers;
    std::size_t said = 0;
    const auto both = [&](const node::Input& event) {
      const auto effects = stepped(first, event);
      const auto again = stepped(second, event);
      ASSERT_EQ(effects.size(), again.size());
      for (std::size_t i = 0; i < effects.size(); ++i) {
        ASSERT_EQ(text_of(effects[i]), text_of(again[i]));
      }
      said += effects.size();
    };
    const auto asks = [&](Member member, node::Request request) {
      both(node::RequestHeard{{"p", member, ++seq}, Generation{1}, std::move(request)});
    };
    asks(w(0), tables());
    for (int round = 0; round < 500; ++round) {
      const Member member = w(static_cast<std::uint32_t>(below(2)));
      const std::uint64_t version = consistency == Consistency::kBarrier ? first.version() : 0;
      switch (below(5)) {
        case 0: {
          const std::uint64_t number = numbers[member] + 1;
          asks(member, wire::PsPush{number, version, {rows({below(9)}, {0.1F * round})}});
          asks(member, wire::PsCommit{number, version, 0, number - 1, number, 0.7});
          numbers[member] = number;
          break;
        }
        case 1:
          asks(member, wire::PsPull{version, {rows({below(9), below(9)})}});
          break;
        case 2:
          asks(member, wire::PsIdle{version});
          break;
        case 3:
          both(node::TimePassed{});
          break;
        default:
          both(node::DecisionsApplied{static_cast<std::uint32_t>(1 + below(2)), {first.version()}});
      }
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(first.version(), 20U);
    EXPECT_GT(said, 500U);
  }
}

TEST_F(ServerNodeTest, ALearningRateThatIsToldHoldsFromTheNextUpdateOnAndIsInItsImage) {
  node::Start alone = start(Consistency::kUnbounded);
  alone.servers = 1;
  alone.workers = {w(0)};
  ServerNode node(alone);
  const auto ask_of = [&](ServerNode& of, const auto& m) {
    std::ignore = stepped(of, node::RequestHeard{{"peer", w(0), ++seq}, Generation{1}, m});
  };
  const auto value = [](ServerNode& of) {
    float read = 0;
    of.store()->read(0, std::vector<std::uint64_t>{1}, reinterpret_cast<char*>(&read));
    return read;
  };
  wire::PsServe told;
  told.number = 1;
  told.workers = {{w(0).worker, w(0).attempt}};
  told.rate = 0.5;
  std::ignore = stepped(node, node::ServeOrdered{told});
  ask_of(node, wire::PsOpen{7, {{"t", 1, "sgd", 1, 0, 0, "zero", 0}}});
  const auto push = [&](ServerNode& of, std::uint64_t number) {
    wire::PsPush m;
    m.number = number;
    m.rows = {rows({1}, {1})};
    ask_of(of, m);
    ask_of(of, wire::PsCommit{number, 0, 0, number - 1, number, 1});
  };
  push(node, 1);
  EXPECT_FLOAT_EQ(value(node), -0.5F);
  told.number = 2;
  for (const double none : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    told.rate = none;
    std::ignore = stepped(node, node::ServeOrdered{told});
  }
  ServerNode other(alone);
  ASSERT_TRUE(other.restore(node.image()));
  push(other, 2);
  EXPECT_FLOAT_EQ(value(other), -0.5F) << "its rows come otherwise, the rate with the image";
}

}  // namespace
}  // namespace antdt::ps::server_node_test
