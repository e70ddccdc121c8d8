// When members stop sharing their steps, and when they begin again.
#include "trainer/worker/sharing/share_trial.h"

#include <gtest/gtest.h>

#include <random>

namespace antdt::worker::sharing {
namespace {

// Steps of a job, one after another. The members know the kind of a step when the one before ends,
// so what that one took cannot change it any more.
class Job {
 public:
  double shared_s = 0.1, alone_s = 0.1;
  double asked_s = 0;
  double noise = 0;  // standard deviation of a step, as a part of it

  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  // Until the newest trial is over that is to come; at most `count` steps.
  [[nodiscard]] const Choice* decides_within(int count) {
    const auto before = trial_.newest();
    for (int i = 0; i < count; ++i) {
      step();
      if (trial_.newest() != before) return &*trial_.newest();
    }
    return nullptr;
  }
  [[nodiscard]] bool shares() const { return trial_.shares(); }
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  void step() {
    const bool shared = std::exchange(next_, trial_.shares());
    const double usual_s = shared ? shared_s : alone_s;
    const double took_s = usual_s * std::max(0.1, 1 + noise * normal_(random_));
    ++steps_;
    seconds_ += took_s;
    trial_.concluded({shared, from_seconds(took_s), from_seconds(shared ? asked_s : 0)});
  }
  ShareTrial trial_;
  bool next_ = true;
  int steps_ = 0;
  double seconds_ = 0;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
};

TEST(ShareTrial, StepsAreSharedAtFirst) {
  Job job;
  job.alone_s = 0.05;
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(job.shares());
    job.steps(1);
  }
}

TEST(ShareTrial, WhereAsksCostMuchItIsFoundSoonThatAloneIsFaster) {
  Job job;
  job.shared_s = 0.007;
  job.alone_s = 0.0055;
  job.asked_s = 0.0007;
  job.noise = 0.1;
  const Choice* const choice = job.decides_within(100);
  ASSERT_NE(choice, nullptr);
  EXPECT_FALSE(choice->shares);
  EXPECT_FALSE(job.shares());
  EXPECT_NEAR(to_seconds(choice->shared), job.shared_s, 0.0005);
  EXPECT_NEAR(to_seconds(choice->alone), job.alone_s, 0.0005);
}

TEST(ShareTrial, WhereSmallRunsCostMuchItIsFoundAfterSomeHundredSteps) {
  Job job;
  job.alone_s = 0.08;
  const Choice* const choice = job.decides_within(300);
  ASSERT_NE(choice, nullptr);
  EXPECT_FALSE(choice->shares);
}

TEST(ShareTrial, ItCostsFewStepsWhereSharingIsMuchFaster) {
  Job job;
  job.alone_s = 0.7;  // a worker is seven times slower
  job.steps(100'000);
  EXPECT_TRUE(job.shares());
  EXPECT_LT(job.seconds(), 100'000 * job.shared_s * 1.003);
}

TEST(ShareTrial, ItCostsLittleWhereAloneIsFaster) {
  for (const double gain : {0.02, 0.07, 0.25}) {
    Job job;
    job.alone_s = (1 - gain) * job.shared_s;
    job.noise = 0.1;
    job.steps(200'000);
    EXPECT_LT(job.seconds(), 200'000 * job.alone_s * 1.005) << gain;
  }
}

TEST(ShareTrial, NoiseAloneChangesNothingThatMatters) {
  Job job;
  job.noise = 0.3;
  job.steps(100'000);
  EXPECT_NEAR(job.seconds(), 100'000 * job.shared_s, 100'000 * job.shared_s * 0.005);
}

TEST(ShareTrial, OneStepThatTookLongDecidesNothing) {
  Job job;
  job.steps(220);  // in a trial
  EXPECT_EQ(job.decides_within(16), nullptr);
  const double usual_s = job.alone_s;
  job.alone_s = job.shared_s = 30;
  job.steps(1);
  job.alone_s = job.shared_s = usual_s;
  EXPECT_EQ(job.decides_within(300), nullptr);
}

TEST(ShareTrial, MembersShareAgainWhenAWorkerBecomesSlow) {
  Job job;
  job.shared_s = 0.007;
  job.alone_s = 0.0055;
  job.asked_s = 0.0007;
  job.steps(1000);
  ASSERT_FALSE(job.shares());
  job.alone_s = 0.02;  // one of four is slower, and the others can help it
  job.shared_s = 0.009;
  const Choice* const choice = job.decides_within(60);
  ASSERT_NE(choice, nullptr);
  EXPECT_TRUE(choice->shares);
}

TEST(ShareTrial, WithoutADifferenceStepsAreShared) {
  Job job;
  const Choice* const choice = job.decides_within(200 + 16 + 2 * 512 + 16);
  ASSERT_NE(choice, nullptr);
  EXPECT_TRUE(choice->shares);
}

}  // namespace
}  // namespace antdt::worker::sharing
