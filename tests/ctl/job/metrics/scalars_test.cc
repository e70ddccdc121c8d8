#include "ctl/job/metrics/scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class ScalarsTest : public testing::Test {
 protected:
  std::vector<metrics::ScalarPoint> see() { return scalars_.see(report_, now_, 1e9); }
  void train(std::uint64_t step) {
    report_.step = Step{step};
    report_.train_loss = 0.5;
    report_.samples_per_second = 1000;
  }

  Scalars scalars_;
  JobReport report_;
  MonoTime now_{hours(1)};
};

TEST_F(ScalarsTest, ThePresentValuesArePointsOfTheStep) {
  train(7);
  report_.workers.resize(2);
  report_.workers[0].state = ProcessState::kJoined;
  report_.generation = Generation{3};
  const auto points = see();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 7);
  EXPECT_EQ(points[0].unix_seconds, 1e9);
  EXPECT_THAT(
      points[0].values,
      ElementsAre(Pair("train/loss", 0.5), Pair("train/samples_per_second", 1000),
                  Pair("train/epoch", 1), Pair("job/workers", 1), Pair("job/generation", 3)));
}

TEST_F(ScalarsTest, AStepIsAPointOnceAndNotTooOften) {
  train(7);
  EXPECT_EQ(see().size(), 1U);
  now_ += seconds(60);
  EXPECT_THAT(see(), IsEmpty());
  train(8);
  EXPECT_EQ(see().size(), 1U);
  train(9);
  EXPECT_THAT(see(), IsEmpty());
  now_ += Scalars::kInterval;
  EXPECT_EQ(see().size(), 1U);
  train(10);
  EXPECT_EQ(scalars_.see(report_, now_, 1e9, true).size(), 1U);
  train(4);  // back to a checkpoint
  now_ += Scalars::kInterval;
  EXPECT_EQ(see()[0].step, 4);
}

TEST_F(ScalarsTest, AMonthHasSomeTenThousandsOfPoints) {
  std::size_t points = 0;
  for (std::uint64_t second = 1; second <= 30 * 24 * 3600; ++second, now_ += seconds(1)) {
    train(second);
    points += see().size();
  }
  EXPECT_GT(points, 20'000U);
  EXPECT_LT(points, 40'000U);
}

TEST_F(ScalarsTest, AnEpochIsToldAtItsEndAndItsEvaluationWhenItIsThere) {
  report_.epoch_reports.resize(1);
  report_.epoch_reports[0].train_loss = 0.25;
  auto points = see();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 1);
  EXPECT_THAT(points[0].values, ElementsAre(Pair("epoch/train_loss", 0.25)));
  EXPECT_THAT(see(), IsEmpty());
  report_.epoch_reports[0].eval = EpochReport::Eval{};
  report_.epoch_reports[0].eval->auc = 0.75;
  report_.epoch_reports[0].eval->records = 200;
  report_.epoch_reports[0].eval->named = {{"top5", 150}};
  points = see();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 1);
  EXPECT_THAT(points[0].values, ElementsAre(Pair("eval/auc", 0.75), Pair("sums/top5", 0.75)));
  EXPECT_THAT(see(), IsEmpty());
}

TEST_F(ScalarsTest, TheEpochThatIsTrainedIsNotToldAndOneWithoutALossNever) {
  report_.epoch_reports.resize(1);
  EXPECT_THAT(see(), IsEmpty()) << "it has just begun";
  report_.epoch_reports.resize(2);  // the first has diverged
  EXPECT_THAT(see(), IsEmpty());
  report_.epoch_reports[1].train_loss = 0.5;
  const auto points = see();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 2);
}

TEST_F(ScalarsTest, ALaterIncarnationRepeatsOnlyTheNewestEpoch) {
  scalars_.skip_past(report_);
  EpochReport trained;
  trained.train_loss = 0.5;
  report_.epoch_reports.resize(2, trained);
  report_.epoch_reports[0].eval = EpochReport::Eval{};
  scalars_.skip_past(report_);
  const auto points = see();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 2);
  report_.epoch_reports.resize(3, trained);
  EXPECT_EQ(see()[0].step, 3);
}

}  // namespace
}  // namespace antdt::ctl
