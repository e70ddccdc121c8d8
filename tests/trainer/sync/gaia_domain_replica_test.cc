// What a member keeps beside its parameters: what other domains know, and what of theirs is here in
// part. All numbers are small sums of powers of two, so arithmetic is exact.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/sync/gaia/domain_replica.h"

namespace antdt::sync::gaia {
namespace {

using Floats = std::vector<float>;

std::vector<std::byte> message_with(const Floats& changes, bool whole) {
  Floats known(changes.size());
  std::vector<std::byte> out;
  (void)Encoder().encode({1, 1, whole}, 0, changes, known, 0, out);
  return out;
}

struct MemberOfADomain {
  DomainReplica replica;
  Floats values{1, 2, 4, 8};

  // Returns the changes that this domain sends.
  Floats send(bool whole, float threshold = 0) {
    std::vector<std::byte> out;
    (void)replica.encode({0, 1, whole}, values, threshold, out);
    const auto message = read_message(out, 0, values.size());
    EXPECT_TRUE(message) << message.error().message;
    Floats changes(values.size());
    add(*message, changes);
    return changes;
  }
  void receive(const std::string& domain, const Floats& changes, bool whole = false) {
    const auto bytes = message_with(changes, whole);
    const auto message = read_message(bytes, 0, values.size());
    ASSERT_TRUE(message) << message.error().message;
    replica.receive(domain, *message, values);
  }
  [[nodiscard]] Floats known() const { return {replica.known().begin(), replica.known().end()}; }
  // A step whose exchange brings this of one domain, and whose update adds this to each value.
  void step(const std::string& domain, const Floats& changes, float update) {
    replica.begin(values);
    receive(domain, changes);
    for (float& value : values) value += update;
    replica.applied();
  }
};

TEST(DomainReplica, ThatIsSettledHasNothingToSend) {
  MemberOfADomain m;
  EXPECT_TRUE(m.replica.settled());
  m.replica.begin(m.values);
  EXPECT_FALSE(m.replica.settled());
  EXPECT_EQ(m.known(), m.values);
  EXPECT_EQ(m.send(true), (Floats{0, 0, 0, 0}));
}

TEST(DomainReplica, SendsWhatItHasGainedAndNotWhatItReceived) {
  MemberOfADomain m;
  m.step("b", {0, 16, 0, 0}, 0.5F);
  EXPECT_EQ(m.values, (Floats{1.5F, 18.5F, 4.5F, 8.5F}));
  m.replica.begin(m.values);
  EXPECT_EQ(m.send(false, 0.25F), (Floats{0.5F, 0, 0, 0})) << "more than a quarter of the value";
  EXPECT_EQ(m.known(), (Floats{1.5F, 18, 4, 8}));
  EXPECT_EQ(m.send(true), (Floats{0, 0.5F, 0.5F, 0.5F})) << "the rest was pending";
  EXPECT_EQ(m.known(), m.values);
}

TEST(DomainReplica, WithdrawsWhatCameOfALostDomainSinceItsLastWholeMessage) {
  MemberOfADomain m;
  m.step("b", {1, 0, 0, 0}, 0);
  m.replica.begin(m.values);
  m.receive("b", {2, 2, 0, 0}, true);
  m.replica.applied();
  const Floats whole = m.values;
  m.step("b", {0, 4, 0, 0}, 0);
  m.step("b", {0, 4, 0, 16}, 0);
  m.step("c", {32, 0, 0, 0}, 0.5F);
  const std::vector<std::string> left{"a", "c"};
  m.replica.withdraw_all_but(left, m.values);
  EXPECT_EQ(m.values,
            (Floats{whole[0] + 32.5F, whole[1] + 0.5F, whole[2] + 0.5F, whole[3] + 0.5F}));
  EXPECT_EQ(m.known(), (Floats{whole[0] + 32, whole[1], whole[2], whole[3]}));
  const Floats values = m.values;
  m.replica.withdraw_all_but(left, m.values);
  EXPECT_EQ(m.values, values) << "it was here once";
}

TEST(DomainReplica, HasAllThatItHadBeforeTheExchangeOfADroppedStep) {
  MemberOfADomain m;
  m.step("b", {1, 0, 0, 0}, 0.5F);
  const Floats values = m.values, known = m.known();
  for (const bool whole : {false, true}) {
    m.replica.begin(m.values);
    (void)m.send(whole);
    m.receive("b", {0, 2, 0, 0}, whole);
    m.receive("c", {0, 0, 4, 0});
    m.replica.restore(m.values);
    EXPECT_EQ(m.values, values);
    EXPECT_EQ(m.known(), known);
  }
  m.replica.begin(m.values);
  EXPECT_EQ(m.send(true), (Floats{0.5F, 0.5F, 0.5F, 0.5F})) << "it is pending again";
  m.replica.restore(m.values);
  m.replica.withdraw_all_but({}, m.values);
  EXPECT_EQ(m.values, (Floats{1.5F, 2.5F, 4.5F, 8.5F})) << "b's part before, and nothing of c";
}

TEST(DomainReplica, OfWhichAPartWasWithdrawnDoesNotGetItBackFromADroppedStep) {
  MemberOfADomain m;
  m.step("b", {1, 0, 0, 0}, 0);
  m.step("c", {0, 0, 0, 2}, 0);
  m.replica.withdraw_all_but(std::vector<std::string>{"c"}, m.values);
  m.replica.begin(m.values);
  m.receive("c", {0, 0, 0, 4});
  m.replica.restore(m.values);
  m.replica.withdraw_all_but({}, m.values);
  EXPECT_EQ(m.values, (Floats{1, 2, 4, 8}));
}

TEST(DomainReplica, ThatWasSettledBeforeADroppedStepIsSettledAfterIt) {
  MemberOfADomain m;
  m.replica.begin(m.values);
  m.receive("b", {1, 1, 1, 1});
  m.replica.restore(m.values);
  EXPECT_TRUE(m.replica.settled());
  EXPECT_EQ(m.values, (Floats{1, 2, 4, 8}));
  m.replica.withdraw_all_but({}, m.values);
  EXPECT_EQ(m.values, (Floats{1, 2, 4, 8}));
}

TEST(DomainReplica, KeepsNothingForADropOnceTheStepIsApplied) {
  MemberOfADomain m;
  m.step("b", {1, 0, 0, 0}, 0.5F);
  const Floats values = m.values;
  m.replica.restore(m.values);
  EXPECT_EQ(m.values, values);
  EXPECT_FALSE(m.replica.settled());
}

TEST(DomainReplica, ThatAppliesAStepWithoutAnExchangeIsAloneAndBeginsAnew) {
  MemberOfADomain m;
  m.step("b", {1, 0, 0, 0}, 0.5F);
  m.replica.applied();
  EXPECT_TRUE(m.replica.settled());
  const Floats values = m.values;
  m.replica.withdraw_all_but({}, m.values);
  EXPECT_EQ(m.values, values) << "what came in part is its own now";
  m.replica.begin(m.values);
  EXPECT_EQ(m.send(true), (Floats{0, 0, 0, 0}));
}

// begin() copies as much as the model has in each step, so it must not ask for new memory for that.
TEST(DomainReplica, BeginsStepsInTheMemoryThatItHas) {
  MemberOfADomain m;
  m.replica.begin(m.values);
  const float* const known = m.replica.known().data();
  for (int i = 0; i < 3; ++i) {
    m.replica.applied();
    m.replica.begin(m.values);
    EXPECT_EQ(m.replica.known().data(), known);
    m.replica.settle();
    m.replica.begin(m.values);
    EXPECT_EQ(m.replica.known().data(), known);
  }
}

}  // namespace
}  // namespace antdt::sync::gaia
