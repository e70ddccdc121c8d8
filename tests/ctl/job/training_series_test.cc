// What the job daemon reports of training.
#include "ctl/job/observers/training_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "core/wire/codec.h"

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

TEST(TrainingSeries, WhatMembersFoundAboutSharedStepsIsReportedOnce) {
  TrainingSeries series(false);
  const wire::StepKinds alone{false, 7340, 5490};
  const auto told = series.compared(alone);
  ASSERT_TRUE(told);
  EXPECT_THAT(*told, HasSubstr("not shared for now"));
  EXPECT_THAT(*told, HasSubstr("7.34 ms, and 5.49 ms"));
  EXPECT_FALSE(series.compared(alone)) << "it is in every later report of the member, too";
  const auto again = series.compared({true, 9000, 20000});
  ASSERT_TRUE(again);
  EXPECT_THAT(*again, HasSubstr("stay shared"));
}

wire::Progress progress_of(std::uint64_t phase, double loss_sum) {
  wire::Progress progress;
  progress.phase = phase;
  progress.step = Step{7};
  progress.samples = 10;
  progress.loss_sum = loss_sum;
  progress.weight_sum = 10;
  return progress;
}

TEST(TrainingSeries, ALossThatIsNotFiniteIsReportedOncePerPhase) {
  TrainingSeries series(false);
  EXPECT_FALSE(series.diverged(progress_of(1, 3.5)));
  const auto told = series.diverged(progress_of(1, std::nan("")));
  ASSERT_TRUE(told);
  EXPECT_THAT(*told, HasSubstr("the training loss is nan by step 7. antdt data which"));
  EXPECT_FALSE(series.diverged(progress_of(1, HUGE_VAL)));
  EXPECT_TRUE(series.diverged(progress_of(2, HUGE_VAL)));
}

TEST(TrainingSeries, AnEpochOfWhichNothingWasHeardHasNoLoss) {
  TrainingSeries series(false);
  wire::PhaseStart start;
  start.phase = 1;
  start.what = wire::PhaseKind::kTrain;
  std::ignore = series.open_phase(start, {}, 0, {});
  const auto told = series.member_done(Epoch{0}, {});
  EXPECT_EQ(told.value(), "epoch 1: trained, its loss is not known");
  EXPECT_TRUE(std::isnan(series.epochs().at(0).train_loss));
}

// The job daemon was started again.
TEST(TrainingSeries, AnEvaluationComesBackWithTheImage) {
  TrainingSeries series(false);
  wire::PhaseStart start;
  start.phase = 1;
  start.what = wire::PhaseKind::kTrain;
  std::ignore = series.open_phase(start, {}, 0, {});
  std::ignore = series.member_done(Epoch{0}, {});
  const EpochReport::Eval eval{0.75, 0.48, 0.5, 200, {{"hits", 150}, {"tokens", 4e9}}};
  EXPECT_THAT(
      series.evaluated(Epoch{0}, eval),
      HasSubstr("AUC 0.7500 accuracy 0.5000 log loss 0.4800 hits 0.75 tokens 2e+07 on 200"));
  const auto image = wire::decode<ImageEpoch>(wire::encode(series.image_of(0)));
  ASSERT_TRUE(image) << image.error().message;
  TrainingSeries again(false);
  again.restore({*image}, {}, std::nullopt, 0);
  const auto newest = again.newest_evaluation();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->named, eval.named);
  EXPECT_EQ(newest->records, 200U);
  EXPECT_EQ(newest->accuracy, 0.5);
}

}  // namespace
}  // namespace antdt::ctl
