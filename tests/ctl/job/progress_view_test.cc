#include "ctl/job/observers/progress_view.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

wire::Progress at(std::uint64_t step, std::uint64_t samples, double loss) {
  wire::Progress p;
  p.phase = 1;
  p.step = Step{step};
  p.samples = samples;
  p.loss_sum = loss * static_cast<double>(samples);
  p.weight_sum = static_cast<double>(samples);
  return p;
}

TEST(ProgressViewTest, SpeedIsThatOfTheLastSeconds) {
  ManualClock clock;
  ProgressView view;
  view.begin_phase(1, clock.now());
  for (int s = 1; s <= 20; ++s) {
    clock.advance(seconds(1));
    const std::uint64_t samples = s <= 10 ? 100U * s : 1000U + 500U * (s - 10);
    view.update(at(s, samples, 0.5), clock.now());
  }
  EXPECT_NEAR(view.samples_per_second(), 500, 1);
  EXPECT_EQ(view.samples_in_phase(), 6000U);
  EXPECT_EQ(view.step(), Step{20});
}

TEST(ProgressViewTest, ALateReportOfASlowerMemberChangesNothing) {
  ManualClock clock;
  ProgressView view;
  view.begin_phase(1, clock.now());
  clock.advance(seconds(1));
  view.update(at(10, 1000, 0.5), clock.now());
  view.update(at(9, 900, 0.6), clock.now());
  EXPECT_EQ(view.samples_in_phase(), 1000U);
  EXPECT_EQ(view.step(), Step{10});
}

TEST(ProgressViewTest, ReportsOfAnotherPhaseDoNotCountForThisOne) {
  ManualClock clock;
  ProgressView view;
  view.begin_phase(3, clock.now());
  view.update(at(10, 1000, 0.5), clock.now());
  EXPECT_EQ(view.samples_in_phase(), 0U);
  EXPECT_EQ(view.phase_loss(), std::nullopt);
}

TEST(ProgressViewTest, RecentLossLeavesOutWhatIsLongAgo) {
  ManualClock clock;
  ProgressView view;
  view.begin_phase(1, clock.now());
  double sum = 0;
  for (int s = 1; s <= 30; ++s) {
    clock.advance(seconds(1));
    sum += s <= 10 ? 100 * 0.9 : 100 * 0.3;
    wire::Progress p = at(s, 100U * s, 0);
    p.loss_sum = sum;
    view.update(p, clock.now());
  }
  EXPECT_NEAR(*view.recent_loss(), 0.3, 1e-9);
  EXPECT_NEAR(view.phase_loss().value(), 0.5, 1e-9);
}

TEST(ProgressViewTest, TrainingTimeCoversTheSamplesOfThePresentPhaseOnce) {
  ManualClock clock;
  ProgressView view;
  view.begin_phase(1, clock.now());
  clock.advance(seconds(10));
  view.update(at(10, 1000, 0.5), clock.now());
  clock.advance(seconds(1));
  EXPECT_EQ(view.training_seconds(), 10) << "no sample is known of the last second";
  view.end_phase(clock.now());
  EXPECT_EQ(view.training_seconds(), 11);
  clock.advance(seconds(1));
  view.update(at(11, 1100, 0.5), clock.now());
  EXPECT_EQ(view.training_seconds(), 11) << "what is heard late was part of the phase";
  clock.advance(seconds(5));
  view.begin_phase(2, clock.now());
  EXPECT_EQ(view.training_seconds(), 11);
  clock.advance(seconds(2));
  wire::Progress next = at(12, 100, 0.5);
  next.phase = 2;
  view.update(next, clock.now());
  EXPECT_EQ(view.training_seconds(), 13);
}

}  // namespace
}  // namespace antdt::ctl
