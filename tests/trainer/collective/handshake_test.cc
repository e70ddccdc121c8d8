// Tests that only members of the generation pass the handshake.
#include "trainer/collective/handshake.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace antdt::trainer {
namespace {

using State = Handshake::State;

crypto::Nonce nonce(unsigned char of) {
  crypto::Nonce made;
  made.fill(std::byte{of});
  return made;
}

Handshake::Self self(std::uint32_t rank, std::uint32_t size = 4) {
  return {{crypto::Secret().derive("generation 3"), "job-1", Generation{3}}, rank, size, false};
}

std::string hears(Handshake& party, const std::string& text) {
  return party.heard(std::as_bytes(std::span(text)));
}

// Rank 1 dials rank 2; stores what each of them sent.
struct Talk {
  Handshake dialler = Handshake::dialling(self(1), 2, nonce(1));
  Handshake listener = Handshake::listening(self(2), nonce(2));
  std::string hello = dialler.opening();
  std::string answer;
  std::string proof;
  Talk() = default;
  Talk(const Handshake::Self& one, const Handshake::Self& other, unsigned char nonces = 1)
      : dialler(Handshake::dialling(one, 2, nonce(nonces))),
        listener(Handshake::listening(other, nonce(nonces + 1))) {}
  Talk& run() {
    answer = hears(listener, hello);
    if (listener.state() == State::kAsked) answer = listener.welcome();
    proof = hears(dialler, answer);
    hears(listener, proof);
    return *this;
  }
  [[nodiscard]] bool met() const {
    return dialler.state() == State::kMet && listener.state() == State::kMet;
  }
};

TEST(Handshake, TwoMembersMeetAndHaveTheSameKeys) {
  Talk talk;
  talk.run();
  ASSERT_TRUE(talk.met());
  EXPECT_EQ(talk.dialler.peer(), 2U);
  EXPECT_EQ(talk.listener.peer(), 1U);
  const LinkKeys one = talk.dialler.keys();
  const LinkKeys other = talk.listener.keys();
  EXPECT_EQ(one.sent.for_wire(), other.received.for_wire());
  EXPECT_EQ(one.received.for_wire(), other.sent.for_wire());
  EXPECT_NE(one.sent.for_wire(), one.received.for_wire());
  const Talk again = Talk(self(1), self(2), 7).run();
  ASSERT_TRUE(again.met());
  EXPECT_NE(again.dialler.keys().sent.for_wire(), one.sent.for_wire()) << "another connection";
}

TEST(Handshake, MessagesMayArriveInPiecesOfAnySize) {
  Talk talk;
  const auto slowly = [](Handshake& party, const std::string& text) {
    std::string reply;
    for (const char c : text) reply += hears(party, std::string(1, c));
    return reply;
  };
  slowly(talk.listener, talk.hello);
  ASSERT_EQ(talk.listener.state(), State::kAsked);
  slowly(talk.listener, slowly(talk.dialler, talk.listener.welcome()));
  EXPECT_TRUE(talk.met());
}

TEST(Handshake, ReadsNoByteAfterTheProof) {
  Talk talk;
  talk.answer = hears(talk.listener, talk.hello + "more");
  ASSERT_EQ(talk.listener.state(), State::kAsked);
  talk.proof = hears(talk.dialler, talk.listener.welcome());
  EXPECT_EQ(talk.listener.wants(), talk.proof.size());
  hears(talk.listener, talk.proof);
  EXPECT_EQ(talk.listener.wants(), 0U);
}

TEST(Handshake, ProvesSecretJobGenerationSizeAndBothRanks) {
  const auto differs = [](auto change) {
    Handshake::Self other = self(2);
    change(other);
    const Talk one = Talk(self(1), other).run();
    EXPECT_EQ(one.listener.state(), State::kOver);
    EXPECT_EQ(one.dialler.state(), State::kOver);
    EXPECT_NE(one.dialler.why().find("not expected"), std::string::npos) << one.dialler.why();
    // A listener of another group that answers all the same.
    Talk lying(self(1), other);
    Handshake trusted = Handshake::dialling(other, 2, nonce(1));
    hears(lying.listener, trusted.opening());
    if (lying.listener.state() != State::kAsked) return;  // the rank itself differs
    EXPECT_EQ(hears(lying.dialler, lying.listener.welcome()), "") << "no proof for it";
    EXPECT_EQ(lying.dialler.state(), State::kOver);
    EXPECT_NE(lying.dialler.why().find("cannot prove"), std::string::npos) << lying.dialler.why();
  };
  differs([](Handshake::Self& s) { s.key.secret = crypto::Secret().derive("another"); });
  differs([](Handshake::Self& s) { s.key.job = "job-2"; });
  differs([](Handshake::Self& s) { s.key.generation = Generation{4}; });
  differs([](Handshake::Self& s) { s.size = 5; });
  differs([](Handshake::Self& s) { s.rank = 3; });
}

TEST(Handshake, AMemberThatEncryptsAndOneThatDoesNotNameTheDifference) {
  for (const bool dialler_encrypts : {true, false}) {
    Handshake::Self one = self(1);
    Handshake::Self other = self(2);
    (dialler_encrypts ? one : other).encrypt = true;
    const Talk talk = Talk(one, other).run();
    EXPECT_FALSE(talk.met());
    EXPECT_NE(talk.listener.why().find("encrypt differs"), std::string::npos);
    EXPECT_NE(talk.dialler.why().find("encrypt is another"), std::string::npos);
  }
}

// An attacker on the way cannot turn encryption off: the choice is part of the proof.
TEST(Handshake, EncryptionCannotBeTakenAwayOnTheWay) {
  Handshake::Self one = self(1);
  Handshake::Self other = self(2);
  one.encrypt = true;
  Talk talk(one, other);
  std::string hello = talk.dialler.opening();
  hello[20] = 0;  // Hello::encrypt
  ASSERT_NE(hello, talk.dialler.opening());
  hears(talk.listener, hello);
  EXPECT_EQ(talk.listener.state(), State::kOver);
}

TEST(Handshake, AReplayedProofFailsAgainstAnotherNonce) {
  Talk first;
  first.run();
  ASSERT_TRUE(first.met());
  // A hello that was recorded on the way, and its proof, are sent again to the same member.
  Handshake again = Handshake::listening(self(2), nonce(9));
  hears(again, first.hello);
  ASSERT_EQ(again.state(), State::kAsked) << "it is a member's";
  EXPECT_EQ(again.peer_nonce(), first.listener.peer_nonce()) << "by which it is known for old";
  std::ignore = again.welcome();
  hears(again, first.proof);
  EXPECT_EQ(again.state(), State::kOver);
  // An answer that was recorded is sent to another question.
  Handshake asks = Handshake::dialling(self(1), 2, nonce(9));
  EXPECT_EQ(hears(asks, first.answer), "");
  EXPECT_EQ(asks.state(), State::kOver);
}

TEST(Handshake, AReflectedMessageProvesNothing) {
  // A stranger between two listening members, or with one alone, can only repeat their messages.
  Talk talk;
  Handshake mirror = Handshake::listening(self(1), nonce(5));
  hears(mirror, talk.hello);
  EXPECT_EQ(mirror.state(), State::kOver) << "a hello for rank 2 is none for rank 1";
  EXPECT_EQ(hears(talk.dialler, talk.hello.substr(0, 80)), "");
  EXPECT_EQ(talk.dialler.state(), State::kOver) << "its own hello is no answer";
  Talk other;
  hears(other.listener, other.hello);
  const std::string answer = other.listener.welcome();
  hears(other.listener, answer.substr(answer.size() - sizeof(crypto::Mac)));
  EXPECT_EQ(other.listener.state(), State::kOver) << "its own mac is no proof";
}

TEST(Handshake, AnyChangedBitEndsTheHandshake) {
  const Talk good = Talk().run();
  for (std::size_t bit = 0; bit < 8 * good.hello.size(); ++bit) {
    Talk talk;
    talk.hello[bit / 8] = static_cast<char>(talk.hello[bit / 8] ^ 1 << bit % 8);
    hears(talk.listener, talk.hello);
    EXPECT_NE(talk.listener.state(), State::kAsked) << "bit " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * good.answer.size(); ++bit) {
    if (bit / 8 >= 12 && bit / 8 < 16) continue;  // unused
    Talk talk;
    hears(talk.listener, talk.hello);
    std::string answer = talk.listener.welcome();
    answer[bit / 8] = static_cast<char>(answer[bit / 8] ^ 1 << bit % 8);
    EXPECT_EQ(hears(talk.dialler, answer), "") << "bit " << bit;
    EXPECT_NE(talk.dialler.state(), State::kMet);
  }
  for (std::size_t bit = 0; bit < 8 * good.proof.size(); ++bit) {
    Talk talk;
    hears(talk.listener, talk.hello);
    std::string proof = hears(talk.dialler, talk.listener.welcome());
    proof[bit / 8] = static_cast<char>(proof[bit / 8] ^ 1 << bit % 8);
    hears(talk.listener, proof);
    EXPECT_EQ(talk.listener.state(), State::kOver) << "bit " << bit;
  }
}

TEST(Handshake, AConnectionThatIsNoWorkersIsRecognizedByItsFirstBytes) {
  Talk talk;
  EXPECT_EQ(hears(talk.listener, "GET / HTTP/1.1\r\n"), "");
  EXPECT_EQ(talk.listener.state(), State::kOver);
  hears(talk.dialler, "HTTP/1.1 400 Bad Request");
  EXPECT_NE(talk.dialler.why().find("no worker"), std::string::npos) << talk.dialler.why();
}

// The greeting of earlier releases: magic, key, size, from, to, welcome.
std::string earlier(std::uint64_t key, std::uint32_t from, std::uint32_t to,
                    std::uint32_t welcome) {
  std::string text("DTcoll1\0", 8);
  const auto add = [&](const auto value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(key);
  for (const std::uint32_t number : {4U, from, to, welcome}) add(number);
  return text;
}

TEST(Handshake, AnEarlierReleaseIsRefusedInItsOwnWordsAndNamedInOurs) {
  Talk talk;
  const std::string reply = hears(talk.listener, earlier(77, 1, 2, 0));
  EXPECT_EQ(reply, earlier(0, 2, 1, 0)) << "not welcome, as it understands it";
  EXPECT_EQ(talk.listener.state(), State::kOver);
  EXPECT_NE(talk.listener.why().find("rank 1"), std::string::npos);
  EXPECT_NE(talk.listener.why().find("install the same release"), std::string::npos);
  EXPECT_EQ(hears(talk.dialler, earlier(77, 2, 1, 1)), "");
  EXPECT_EQ(talk.dialler.state(), State::kOver) << "even where it is welcome";
  EXPECT_NE(talk.dialler.why().find("install the same release"), std::string::npos);
}

}  // namespace
}  // namespace antdt::trainer
