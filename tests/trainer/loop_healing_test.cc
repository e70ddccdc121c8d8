// Who sends the training state to whom, and what is left when that breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop_testing.h"
#include "trainer/loop/healing.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

HealSlot holder(std::uint64_t step, std::uint64_t meta_bytes = 100) {
  return {true, Step{step}, meta_bytes, 2, 800, 77};
}
HealSlot newcomer() { return {false, Step{0}, 30, 2, 800, 77}; }

// What the members do, by rank: "." nothing, "s" sends, "r" receives, "x" both.
std::string flows(const std::vector<HealSlot>& slots) {
  std::string result;
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    const auto plan = heal_plan(slots, rank);
    if (!plan) return plan.error().message;
    result += plan->receives ? (plan->sends ? 'x' : 'r') : (plan->sends ? 's' : '.');
  }
  return result;
}

TEST(HealPlan, WhereEverybodyIsAtTheSameStepNothingIsSent) {
  EXPECT_EQ(flows({holder(7), holder(7), holder(7)}), "...");
  EXPECT_EQ(flows({holder(0)}), ".");
}

TEST(HealPlan, ANewcomerReceivesFromItsLeftNeighbour) {
  EXPECT_EQ(flows({holder(7), newcomer(), holder(7)}), "sr.");
  EXPECT_EQ(flows({newcomer(), holder(7)}), "rs");
}

TEST(HealPlan, NewcomersPassOnWhatTheyReceiveAroundTheRingToo) {
  EXPECT_EQ(flows({holder(7), newcomer(), newcomer(), holder(7)}), "sxr.");
  EXPECT_EQ(flows({newcomer(), newcomer(), holder(7), newcomer()}), "xrsx");
}

TEST(HealPlan, WhoIsAStepBehindReceivesFromWhoIsNot) {
  EXPECT_EQ(flows({holder(7), holder(8), holder(7), holder(8)}), "rsrs");
  EXPECT_EQ(heal_plan(std::vector{holder(7), holder(8)}, 0)->step, Step{8});
  EXPECT_EQ(heal_plan(std::vector{holder(7), holder(8)}, 1)->step, Step{8});
}

TEST(HealPlan, AStepThatSomebodyWithoutTheStateNamesCountsForNothing) {
  HealSlot lost = newcomer();
  lost.step = Step{900};
  EXPECT_EQ(flows({holder(7), lost}), "sr");
  EXPECT_EQ(heal_plan(std::vector{holder(7), lost}, 1)->step, Step{7});
}

TEST(HealPlan, WhatGoesBeforeThePartsIsAsLongAsItsSourceSays) {
  const std::vector slots{holder(7, 111), newcomer(), newcomer(), holder(7, 222), newcomer()};
  const std::vector<std::uint64_t> expected{111, 111, 111, 222, 222};
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    EXPECT_EQ(heal_plan(slots, rank)->meta_bytes, expected[rank]) << rank;
  }
}

TEST(HealPlan, NobodyWithTheStateIsAnErrorForAll) {
  EXPECT_THAT(flows({newcomer(), newcomer()}), HasSubstr("none of the 2 members holds"));
}

TEST(HealPlan, StatesOfDifferentSizesAreAnErrorThatNamesBoth) {
  HealSlot other = newcomer();
  other.parts = 3;
  other.part_bytes = 900;
  EXPECT_THAT(flows({holder(7), other}),
              HasSubstr("rank 0 has 2 parts with 800 bytes and that of rank 1 has 3 with 900"));
  other = newcomer();
  other.part_sizes = 78;
  EXPECT_THAT(flows({holder(7), other}), HasSubstr("of other sizes"));
}

TEST(HealPlan, AnAbsurdLengthIsRefused) {
  EXPECT_THAT(flows({holder(7, std::uint64_t{1} << 60), newcomer()}), HasSubstr("rank 0 wants"));
}

// ------------------------------------------------------------------- healing

constexpr std::size_t kCounters = 100;
constexpr std::size_t kBallast = 2'500'000;  // several chunks

struct Patient {
  Tally engine{kCounters, {}, kBallast};
  TrainingState state;
  bool has_state = false;
  Status status;

  // As if it had trained `steps` steps in generation 4.
  void train(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      for (float& count : engine.counts_) count += 1;
      engine.apply(1);
    }
    has_state = true;
    state.settled = Generation{4};
    state.step = Step{steps};
    state.phase = 3;
    state.places = {{{'w', 0}, steps * 10}, {{'w', 1}, steps * 11}};
    state.loss_sum = 0.5 * static_cast<double>(steps);
    state.weight_sum = static_cast<double>(steps);
    state.pristine = false;
    state.log.begin(Generation{4});
    for (std::uint64_t i = 1; i <= steps; ++i) {
      state.log.add(Step{i}, 3, std::vector{i * 10, i * 11}, std::vector<std::uint64_t>{10, 11});
    }
  }
};

void heal_all(std::vector<Patient>& patients, const LocalGroup::Script& script_of_0 = {}) {
  LocalGroup group(static_cast<std::uint32_t>(patients.size()));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < patients.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto collective = group.member(rank, rank == 0 ? script_of_0 : LocalGroup::Script{});
      Patient& p = patients[rank];
      try {
        p.status = heal(*collective, p.engine, p.state, p.has_state, Generation{4});
      } catch (const Killed&) {
        p.status = fail(ErrorKind::kAborted, "killed");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

void expect_like(const Patient& p, const Patient& source) {
  ASSERT_TRUE(p.status) << p.status.error().message;
  EXPECT_EQ(p.engine.state_hash(p.state.step), source.engine.state_hash(source.state.step));
  EXPECT_EQ(p.state.step, source.state.step);
  EXPECT_EQ(p.state.settled, Generation{4});
  EXPECT_EQ(p.state.phase, source.state.phase);
  EXPECT_EQ(p.state.loss_sum, source.state.loss_sum);
  EXPECT_EQ(p.state.weight_sum, source.state.weight_sum);
  ASSERT_EQ(p.state.places.size(), source.state.places.size());
  EXPECT_EQ(p.state.places[1].place, source.state.places[1].place);
  EXPECT_FALSE(p.state.pristine);
  const wire::StepHistory& told = p.state.log.history();
  EXPECT_EQ(told.generation, Generation{4});
  ASSERT_EQ(told.runs.size(), 1U) << "it can tell which records made the steps, too";
  EXPECT_EQ(told.runs[0].steps, source.state.step.value);
}

TEST(Healing, AChainOfNewcomersAndOneThatIsBehindGetTheFurthestState) {
  std::vector<Patient> patients(4);
  patients[0].train(8);
  patients[3].train(7);
  heal_all(patients);
  for (const Patient& p : patients) expect_like(p, patients[0]);
  EXPECT_EQ(patients[0].engine.replaced_, 0U);
  EXPECT_EQ(patients[3].engine.replaced_, 1U);
}

TEST(Healing, WhenTheSourceDiesWhoIsBehindKeepsWhatItHadAndANewcomerHasNothing) {
  for (const std::uint64_t chunk : {0U, 1U, 2U, 4U}) {
    std::vector<Patient> patients(3);
    patients[0].train(8);
    patients[1].train(7);
    const std::uint64_t before = patients[1].engine.state_hash(Step{7});
    heal_all(patients, [&](OperationKind kind, std::uint64_t number) {
      return kind == OperationKind::kSend && number == chunk ? Fate::kDies : Fate::kGoesOn;
    });
    const Patient& behind = patients[1];
    EXPECT_FALSE(behind.status);
    EXPECT_EQ(behind.state.settled, Generation{4});
    EXPECT_EQ(behind.state.step, Step{7});
    EXPECT_EQ(behind.engine.state_hash(Step{7}), before);
    EXPECT_THAT(behind.engine.counts_, Each(7.0F));
    const Patient& fresh = patients[2];
    EXPECT_FALSE(fresh.status);
    EXPECT_EQ(fresh.state.settled, Generation{0});
    EXPECT_FALSE(fresh.state.pristine) << "it cannot be taken for the seeded start any more";
  }
}

TEST(Healing, AModelOfAnotherSizeIsAnErrorOnBothSidesAndChangesNothing) {
  std::vector<Patient> patients(1);
  patients[0].train(8);
  LocalGroup group(2);
  Tally other(kCounters + 1, {}, kBallast);
  TrainingState state;
  Status mine, theirs;
  std::thread thread([&] {
    const auto collective = group.member(1);
    theirs = heal(*collective, other, state, false, Generation{4});
  });
  const auto collective = group.member(0);
  mine = heal(*collective, patients[0].engine, patients[0].state, true, Generation{4});
  thread.join();
  ASSERT_FALSE(mine);
  ASSERT_FALSE(theirs);
  EXPECT_THAT(theirs.error().message, HasSubstr("their models or optimizers differ"));
  EXPECT_TRUE(state.pristine);
}

}  // namespace
}  // namespace antdt::trainer
