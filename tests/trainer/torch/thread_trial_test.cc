// Whether more than one compute thread pays, by the times of a worker's first steps.
#include "trainer/torch/threads/thread_trial.h"

#include <gtest/gtest.h>

#include <functional>

namespace antdt::trainer {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How long a step of 100 records takes with such threads.
using Cost = std::function<Duration(PoolThreads)>;

// The steps of a trial; fails after a thousand. A trial whose winner has several threads is over
// with the first step of a second in which now() stayed.
int settle(ThreadTrial& trial, const Cost& cost) {
  int steps = 0, last_change = 0;
  Duration same{};
  for (; !trial.settled() && same < std::chrono::seconds(1) && steps < 1000; ++steps) {
    const PoolThreads before = trial.now();
    const Duration took = cost(before);
    trial.step(took, 100);
    same = trial.now() == before ? same + took : Duration{};
    if (trial.now() != before) last_change = steps + 1;
  }
  EXPECT_LT(steps, 1000);
  return last_change;
}

Duration two_pools_in_each_others_way(PoolThreads t) {
  if (t.torch > 1 && t.blas > 1) return milliseconds(9);
  return t.blas > 1 ? milliseconds(5) : milliseconds(7);
}

TEST(ThreadTrial, OneThreadIsSettledFromTheStart) {
  const ThreadTrial trial(1, true);
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.now(), PoolThreads{});
}

TEST(ThreadTrial, ThePoolThatPaysIsKeptAndTheOtherHasOneThread) {
  ThreadTrial trial(2, true);
  settle(trial, two_pools_in_each_others_way);
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 1, .blas = 2}));
}

TEST(ThreadTrial, WhereBothPoolsPayBothAreKept) {
  ThreadTrial trial(2, true);
  settle(trial, [](PoolThreads t) { return milliseconds(12 - 2 * t.torch - 2 * t.blas); });
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 2, .blas = 2}));
}

TEST(ThreadTrial, OneThreadIsKeptWhereMoreAreSlower) {
  for (const bool two_pools : {false, true}) {
    ThreadTrial trial(2, two_pools);
    settle(trial, [](PoolThreads t) { return milliseconds(3 + t.torch + t.blas); });
    EXPECT_EQ(trial.now(), PoolThreads{}) << two_pools;
  }
}

TEST(ThreadTrial, OneThreadIsKeptWhereMoreGainLessThanATwentieth) {
  ThreadTrial trial(2, false);
  settle(trial, [](PoolThreads t) { return microseconds(t.torch > 1 ? 9700 : 10000); });
  EXPECT_EQ(trial.now(), PoolThreads{});
}

TEST(ThreadTrial, APoolThatBothShareIsTriedAsAWhole) {
  ThreadTrial trial(2, false);
  settle(trial, [](PoolThreads t) {
    EXPECT_EQ(t.torch, t.blas);
    return milliseconds(t.torch > 1 ? 3 : 5);
  });
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 2, .blas = 2}));
}

TEST(ThreadTrial, ThreadsAreDoubledForAsLongAsMoreAreFaster) {
  ThreadTrial trial(16, false);
  // best with 4: beyond that each thread costs more than it computes
  settle(trial, [](PoolThreads t) { return microseconds(16000 / t.torch + 1000 * t.torch); });
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 4, .blas = 4}));
}

TEST(ThreadTrial, NoMoreThreadsAreUsedThanTheJobAllows) {
  ThreadTrial trial(6, true);
  settle(trial, [](PoolThreads t) { return microseconds(16000 / t.torch + 16000 / t.blas); });
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 6, .blas = 6}));
}

TEST(ThreadTrial, AStepThatWasHeldUpDoesNotDecide) {
  ThreadTrial trial(2, true);
  int steps = 0;
  settle(trial, [&](PoolThreads t) {
    return ++steps % 4 == 0 ? milliseconds(500) : two_pools_in_each_others_way(t);
  });
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 1, .blas = 2}));
}

TEST(ThreadTrial, ItTriesAgainWhenTheWinnersStepsBecomeSlower) {
  ThreadTrial trial(2, true);
  settle(trial, two_pools_in_each_others_way);
  ASSERT_EQ(trial.now(), (PoolThreads{.torch = 1, .blas = 2}));
  // Something else takes the second core: threads wait for one another.
  for (int i = 0; i < 1000 && !trial.settled(); ++i) {
    const bool alone = trial.now() == PoolThreads{};
    trial.step(milliseconds(alone ? 8 : 20), 100);
  }
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.now(), PoolThreads{});
}

TEST(ThreadTrial, ItDoesNotTryAgainWhileStepsAreALittleSlower) {
  ThreadTrial trial(2, true);
  settle(trial, two_pools_in_each_others_way);
  for (int i = 0; i < 5000; ++i) {
    trial.step(milliseconds(7), 100);
    ASSERT_EQ(trial.now(), (PoolThreads{.torch = 1, .blas = 2})) << "step " << i;
  }
}

TEST(ThreadTrial, StepsWithoutRecordsSayNothing) {
  ThreadTrial trial(2, true);
  for (int i = 0; i < 1000; ++i) trial.step(milliseconds(50), 0);
  EXPECT_EQ(trial.now(), PoolThreads{});
  EXPECT_FALSE(trial.settled());
}

TEST(ThreadTrial, BatchesOfUnlikeSizesAreComparedByRecord) {
  ThreadTrial trial(2, false);
  std::uint64_t records = 0;
  for (int i = 0; i < 1000 && !trial.settled(); ++i) {
    records = i % 2 == 0 ? 100 : 300;
    const int us_a_record = trial.now().torch > 1 ? 30 : 60;
    trial.step(microseconds(us_a_record * records), records);
  }
  EXPECT_EQ(trial.now(), (PoolThreads{.torch = 2, .blas = 2}));
}

TEST(ThreadTrial, ATrialOfShortStepsLastsAboutASecondAndOfLongOnesSomeSteps) {
  ThreadTrial brief(2, true);
  EXPECT_LT(settle(brief, two_pools_in_each_others_way), 200);
  ThreadTrial lengthy(2, true);
  EXPECT_EQ(settle(lengthy, [](PoolThreads) { return milliseconds(200); }), 6 * 4);
}

}  // namespace
}  // namespace antdt::trainer
