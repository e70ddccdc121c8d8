// The bytes of a training state on their way, and the state that is left when the transfer breaks.
#include "trainer/loop/state/healing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/testing.h"
#include "trainer/loop/state/state_hash.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kCounters = 100;
constexpr std::size_t kBallast = 2'500'000;  // several chunks

struct Patient {
  Tally engine{kCounters, {}, kBallast};
  Step step;
  bool has_state = false;
  std::string meta;  // of its own state, then of the received one
  Status status;

  void train(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      for (float& count : engine.counts_) count += 1;
      engine.apply(1);
    }
    has_state = true;
    step = Step{steps};
    meta = "after step " + std::to_string(steps);
  }
};

// Heals as the member's machine does.
Status heal(Collective& collective, Patient& p) {
  ANTDT_TRY(const auto slots, compare_states(collective, p.engine, {p.has_state, p.step, p.meta}));
  ANTDT_TRY(const auto plan, worker::heal_plan(slots, collective.rank()));
  ANTDT_TRY(p.meta, pass_state(collective, p.engine, {plan, p.meta, 0, p.has_state}));
  return {};
}

void heal_all(std::vector<Patient>& patients, const LocalGroup::Script& script_of_0 = {}) {
  LocalGroup group(static_cast<std::uint32_t>(patients.size()));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < patients.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto collective = group.member(rank, rank == 0 ? script_of_0 : LocalGroup::Script{});
      Patient& p = patients[rank];
      try {
        p.status = heal(*collective, p);
      } catch (const Killed&) {
        p.status = fail(ErrorKind::kAborted, "killed");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Healing, AChainOfNewcomersAndOneThatIsBehindGetTheFurthestState) {
  std::vector<Patient> patients(4);
  patients[0].train(8);
  patients[3].train(7);
  heal_all(patients);
  for (Patient& p : patients) {
    ASSERT_TRUE(p.status) << p.status.error().message;
    EXPECT_EQ(state_hash(p.engine, Step{8}), state_hash(patients[0].engine, Step{8}));
    EXPECT_EQ(p.meta, "after step 8");
  }
  EXPECT_EQ(patients[0].engine.replaced_, 0U);
  EXPECT_EQ(patients[3].engine.replaced_, 1U);
}

TEST(Healing, WhenTheSourceDiesAMemberThatIsBehindKeepsItsState) {
  for (const std::uint64_t chunk : {0U, 1U, 2U, 4U}) {
    std::vector<Patient> patients(3);
    patients[0].train(8);
    patients[1].train(7);
    const std::uint64_t before = state_hash(patients[1].engine, Step{7});
    heal_all(patients, [&](OperationKind kind, std::uint64_t number) {
      return kind == OperationKind::kSend && number == chunk ? Fate::kDies : Fate::kGoesOn;
    });
    Patient& behind = patients[1];
    EXPECT_FALSE(behind.status);
    EXPECT_EQ(state_hash(behind.engine, Step{7}), before);
    EXPECT_THAT(behind.engine.counts_, Each(7.0F));
    EXPECT_EQ(behind.engine.replaced_, 0U);
    EXPECT_FALSE(patients[2].status);
  }
}

// What devices of different classes do to replicas: the same steps, and other last bits.
TEST(Healing, ReplicasThatDifferInBitsGoOnWithTheStateOfTheFirst) {
  std::vector<Patient> members(5);
  for (Patient& p : members) p.train(3);
  for (const std::size_t rank : {1U, 2U, 4U}) {
    float& count = members[rank].engine.counts_[rank];
    count = std::nextafter(count, 0.0F);
  }
  const std::uint64_t first = state_hash(members[0].engine, Step{3});
  std::vector<Result<SettledHash>> settled(members.size());
  LocalGroup(5).run([&](Collective& collective) {
    Engine& engine = members[collective.rank()].engine;
    settled[collective.rank()] =
        settle_differences(collective, engine, Step{3}, state_hash(engine, Step{3}));
  });
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    ASSERT_TRUE(settled[rank]) << settled[rank].error().message;
    const bool differed = rank == 1 || rank == 2 || rank == 4;
    EXPECT_EQ(settled[rank]->replaced, differed) << rank;
    EXPECT_EQ(settled[rank]->hash, first) << rank;
    EXPECT_EQ(members[rank].engine.replaced_, differed ? 1U : 0U) << rank;
    EXPECT_THAT(members[rank].engine.counts_, Each(3.0F)) << rank;
  }
}

TEST(Healing, ReplicasThatAreAlikePassNothing) {
  std::vector<Patient> members(3);
  for (Patient& p : members) p.train(3);
  LocalGroup group(3);
  group.run([&](Collective& collective) {
    Engine& engine = members[collective.rank()].engine;
    const auto settled =
        settle_differences(collective, engine, Step{3}, state_hash(engine, Step{3}));
    ASSERT_TRUE(settled);
    EXPECT_FALSE(settled->replaced);
  });
  for (const Patient& p : members) EXPECT_EQ(p.engine.replaced_, 0U);
}

TEST(Healing, AModelOfAnotherSizeIsAnErrorOnBothSidesAndChangesNothing) {
  Patient mine;
  mine.train(8);
  LocalGroup group(2);
  Tally other(kCounters + 1, {}, kBallast);
  Status theirs;
  std::thread thread([&] {
    const auto collective = group.member(1);
    const auto slots = compare_states(*collective, other, {false, Step{}, ""});
    ASSERT_TRUE(slots);
    const auto plan = worker::heal_plan(*slots, 1);
    if (!plan) theirs = tl::unexpected(plan.error());
  });
  const auto collective = group.member(0);
  const Status ours = heal(*collective, mine);
  thread.join();
  ASSERT_FALSE(ours);
  ASSERT_FALSE(theirs);
  EXPECT_THAT(theirs.error().message, HasSubstr("their models or optimizers differ"));
}

}  // namespace
}  // namespace antdt::trainer
