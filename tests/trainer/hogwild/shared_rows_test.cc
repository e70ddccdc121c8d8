// Parameters that threads train at once: what each thread does alone is the optimizer's step, and
// what they do together converges.
#include "trainer/hogwild/shared_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <vector>

#include "trainer/hogwild/thread_team.h"

namespace antdt::hogwild {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;
using Kind = ps::UpdateRule::Kind;

ps::UpdateRule rule(Kind kind, float rate = 0.1F) { return {kind, rate, 0.01F, 0}; }

std::vector<float> read(const SharedRows& rows, std::size_t count) {
  std::vector<float> values(count);
  rows.read(values);
  return values;
}

class SharedRowsOfEachRule : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Rules, SharedRowsOfEachRule,
                         ::testing::Values(Kind::kSgd, Kind::kAdagrad, Kind::kAdam));

TEST_P(SharedRowsOfEachRule, OneThreadMakesTheStepsOfTheRule) {
  constexpr std::size_t kCount = 10;  // the last of three rows is not full
  std::vector<float> want(kCount), gradient(kCount);
  std::iota(want.begin(), want.end(), -3.0F);
  SharedRows rows(want, 4, rule(GetParam()));
  std::vector<float> state(rule(GetParam()).state(kCount));
  for (std::size_t step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < kCount; ++i) gradient[i] = std::sin(static_cast<float>(i + step));
    rule(GetParam()).apply(want, state, gradient, 0.5F);
    rows.update(gradient, 0.5F, step);  // whichever row it begins with
    EXPECT_EQ(read(rows, kCount), want) << "step " << step;
  }
  EXPECT_THAT(rows.values().subspan(kCount), Each(0.0F)) << "what fills the last row";
}

// A step of any thread moves a parameter towards its target, whatever steps of others are lost or
// seen in part. A thread that stands still in a step ends it with a gradient, and a state of the
// optimizer, from before: Adam may even begin anew, with steps as long as its rate. So how far
// parameters may be from their targets in the end follows from the rate, which shrinks (as in the
// paper), and from when threads wait for one another, as they do in a worker between two steps.
TEST_P(SharedRowsOfEachRule, ThreadsDescendTogether) {
  constexpr std::size_t kCount = 300;
  std::vector<float> target(kCount);
  for (std::size_t i = 0; i < kCount; ++i) target[i] = std::cos(static_cast<float>(i));
  ps::UpdateRule descent = rule(GetParam(), GetParam() == Kind::kAdagrad ? 0.5F : 0.05F);
  descent.weight_decay = 0;
  SharedRows rows(std::vector<float>(kCount), 16, descent);
  ThreadTeam team(4);
  const auto descend = [&](std::size_t thread) {
    std::vector<float> values(kCount), gradient(kCount);
    for (int step = 0; step < 50; ++step) {
      rows.read(values);
      for (std::size_t i = 0; i < kCount; ++i) gradient[i] = values[i] - target[i];
      rows.update(gradient, 1, thread * 5);
    }
  };
  for (int round = 0; round < 12; ++round) {
    if (round >= 4) rows.set_learning_rate(descent.learning_rate /= 2);
    team.run(descend);
  }
  EXPECT_THAT(read(rows, kCount), Pointwise(FloatNear(0.02F), target));
}

// The counts that a row of floats holds are whole, so a value that was torn or made up would show.
TEST(SharedRows, AValueIsAlwaysOneThatSomeThreadStored) {
  constexpr std::size_t kCount = 64;
  constexpr int kSteps = 2000;
  SharedRows rows(std::vector<float>(kCount), 8, rule(Kind::kSum));
  ThreadTeam team(4);
  std::atomic<int> wrong = 0;
  team.run([&](std::size_t) {
    const std::vector<float> one(kCount, 1);
    std::vector<float> seen(kCount);
    for (int step = 0; step < kSteps; ++step) {
      rows.update(one, 1);
      rows.read(seen);
      for (const float x : seen) wrong += !(x >= 1 && x <= 4 * kSteps && x == std::floor(x));
    }
  });
  EXPECT_EQ(wrong, 0);
  for (const float x : read(rows, kCount)) {
    EXPECT_GE(x, 1);
    EXPECT_LE(x, 4 * kSteps) << "no step counts twice";
  }
}

TEST(SharedRows, NoStepIsLostWhereThreadsTakeTurns) {
  constexpr int kSteps = 500;
  SharedRows rows(std::vector<float>(4), 1, rule(Kind::kSum));
  ThreadTeam team(4);
  for (int step = 0; step < kSteps; ++step) {
    team.run([&](std::size_t thread) {
      if (static_cast<int>(thread) == step % 4) rows.update(std::vector<float>(4, 1.0F), 1, thread);
    });
  }
  EXPECT_THAT(read(rows, 4), Each(static_cast<float>(kSteps)));
}

TEST(SharedRows, AClearedStateIsANewOptimizer) {
  const std::vector<float> values{1, 2, 3}, gradient{1, -1, 2};
  SharedRows fresh(values, 2, rule(Kind::kAdam)), old(values, 2, rule(Kind::kAdam));
  old.update(gradient, 1);
  std::ranges::copy(values, old.values().begin());
  old.clear_state();
  fresh.update(gradient, 1);
  old.update(gradient, 1);
  EXPECT_EQ(read(old, 3), read(fresh, 3));
}

TEST(SharedRows, FollowTheLearningRate) {
  SharedRows rows(std::vector<float>{1, 1}, 2, {Kind::kSgd, 1, 0, 0});
  rows.set_learning_rate(0.25F);
  rows.update(std::vector<float>{1, 2}, 1);
  EXPECT_THAT(read(rows, 2), ElementsAre(0.75F, 0.5F));
}

}  // namespace
}  // namespace antdt::hogwild
