#include "ctl/control/solutions/backup_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace antdt::ctl::solutions {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// Eight workers; the first `slow` of them are slow, and all wait. The job file says `least`.
ClusterView view_with(std::uint32_t slow, double waits, std::uint32_t backups,
                      std::uint32_t least = 0) {
  ClusterView view;
  for (std::uint32_t i = 0; i < 8; ++i) {
    WorkerView w;
    w.member = {WorkerId{'w', i}, Attempt{1}};
    w.measured = true;
    w.wait_share = waits;
    if (i < slow) w.verdict.kind = VerdictKind::kTransient;
    view.workers.push_back(w);
  }
  view.persistent_window = seconds(60);
  view.backups = backups;
  view.least_backups = least;
  return view;
}

class BackupTest : public ::testing::Test {
 protected:
  // Ticks for this long, or until there is a wish; returns its count.
  std::optional<std::uint32_t> run(const ClusterView& view, int for_s) {
    for (int i = 0; i < for_s; ++i) {
      now_ += seconds(1);
      const Decision decision = judge_.decide(view, now_);
      if (decision.actions.empty()) continue;
      reason_ = decision.reason;
      rate_ = std::get<AdjustLearningRate>(decision.actions.at(1)).factor;
      return std::get<BackupWorkers>(decision.actions[0]).count;
    }
    return std::nullopt;
  }

  BackupJudge judge_;
  MonoTime now_{std::chrono::hours(1)};
  std::string reason_;
  double rate_ = 0;
};

TEST_F(BackupTest, TransientStragglersThatAreAlwaysThereAreNotWaitedFor) {
  EXPECT_EQ(run(view_with(2, 0.5, 0), 59), std::nullopt) << "not before a window has passed";
  EXPECT_EQ(run(view_with(2, 0.5, 0), 10), 1u);
  EXPECT_THAT(reason_, HasSubstr("goes on without 1 pushes instead of 0"));
  EXPECT_EQ(run(view_with(2, 0.5, 1), 300), 2u);
  EXPECT_EQ(run(view_with(4, 0.5, 2), 600), std::nullopt) << "a quarter of them at most";
}

TEST_F(BackupTest, TheLearningRateFollowsTheSamplesOfAStep) {
  auto view = view_with(2, 0.5, 0);
  view.optimizer = "sgd";
  ASSERT_EQ(run(view, 300), 1u);
  EXPECT_DOUBLE_EQ(rate_, 7.0 / 8) << "pushes of eight";
  view.backups = 1;
  ASSERT_EQ(run(view, 300), 2u);
  EXPECT_DOUBLE_EQ(rate_, 6.0 / 8) << "not on top of what was said before";
  view = view_with(0, 0.1, 2);
  view.optimizer = "sgd";
  ASSERT_EQ(run(view, 600), 1u);
  view.backups = 1;
  ASSERT_EQ(run(view, 600), 0u);
  EXPECT_DOUBLE_EQ(rate_, 1);
}

TEST_F(BackupTest, WithAnAdaptiveOptimizerTheRateFollowsTheSquareRoot) {
  auto view = view_with(2, 0.5, 1, 1);
  view.optimizer = "adam";
  ASSERT_EQ(run(view, 300), 2u);
  EXPECT_DOUBLE_EQ(rate_, std::sqrt(6.0 / 7)) << "the job was made for seven pushes of eight";
}

TEST_F(BackupTest, WhereNobodyWaitsThereIsNoNeed) {
  EXPECT_EQ(run(view_with(2, 0.1, 0), 600), std::nullopt);
}

TEST_F(BackupTest, WhenTheyAreGoneAllAreWaitedForAgainButThoseOfTheJobFile) {
  ASSERT_EQ(run(view_with(2, 0.5, 1, 1), 300), 2u);
  EXPECT_EQ(run(view_with(0, 0.1, 2, 1), 300), 1u);
  EXPECT_EQ(run(view_with(0, 0.1, 1, 1), 600), std::nullopt);
}

// `judge_` is that of a job daemon which was started again, and has not made them two itself.
TEST_F(BackupTest, ThoseOfAnEarlierJobDaemonAreWaitedForAgainToo) {
  auto view = view_with(0, 0.1, 2);
  view.optimizer = "sgd";
  ASSERT_EQ(run(view, 300), 1u);
  EXPECT_DOUBLE_EQ(rate_, 7.0 / 8);
  view.backups = 1;
  ASSERT_EQ(run(view, 300), 0u);
  EXPECT_DOUBLE_EQ(rate_, 1);
}

TEST_F(BackupTest, ThoseOfAnEarlierJobDaemonStayWhileTheStragglersDo) {
  auto view = view_with(4, 0.5, 4);
  for (std::uint32_t i = 8; i < 16; ++i) {
    view.workers.push_back(view.workers[7]);
    view.workers[i].member.worker.index = i;
  }
  EXPECT_EQ(run(view, 600), std::nullopt);
}

TEST_F(BackupTest, OtherSyncsHaveNoBackups) {
  auto view = view_with(2, 0.5, 0);
  view.backups.reset();
  EXPECT_EQ(run(view, 600), std::nullopt);
  EXPECT_TRUE(BackupWorkersFixed().decide(view, now_).actions.empty());
}

TEST_F(BackupTest, TheFixedSolutionHasOneUnlessTheJobFileSaysAnother) {
  BackupWorkersFixed fixed;
  const Decision first = fixed.decide(view_with(0, 0, 0), now_);
  ASSERT_EQ(first.actions.size(), 1u);
  EXPECT_EQ(std::get<BackupWorkers>(first.actions[0]).count, 1u);
  EXPECT_TRUE(fixed.decide(view_with(0, 0, 1), now_).actions.empty());
  EXPECT_TRUE(fixed.decide(view_with(0, 0, 3), now_).actions.empty());
}

}  // namespace
}  // namespace antdt::ctl::solutions
