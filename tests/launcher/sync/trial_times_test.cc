// What a trial's statuses, which are made up here, tell of its steps.
#include "launcher/plan/trial_times.h"

#include <gtest/gtest.h>

namespace antdt::launcher::plan {
namespace {

constexpr double kMilli = 1e-3;

Trial of_two_workers() {
  Trial trial;
  trial.workers = 2;
  trial.batch = 16;
  return trial;
}

report::WorkerStatus worker(const std::string& id, double batches, double own_s, double wait_s) {
  report::WorkerStatus w;
  w.id = id;
  w.samples = static_cast<std::uint64_t>(16 * batches);
  w.lost_time.emplace();
  w.lost_time->startup = 3;
  w.lost_time->compute = batches * own_s;
  w.lost_time->collective_wait = batches * wait_s;
  return w;
}

// Both workers reported when they had trained so many batches, of 40 ms each.
report::Status seen_at(double wall_s, double batches) {
  report::Status status;
  status.wall_seconds = wall_s;
  status.workers = {worker("w0", batches, 36 * kMilli, 4 * kMilli),
                    worker("w1", batches, 30 * kMilli, 10 * kMilli)};
  status.samples_done = status.workers[0].samples + status.workers[1].samples;
  return status;
}

TEST(TrialTimes, AStepTakesAsLongAsWorkersSayWheneverTheirReportsCome) {
  // The report that comes at 3.1 s tells of a whole second.
  const Trial trial = timed(of_two_workers(), {seen_at(1, 0), seen_at(1.1, 2), seen_at(2.1, 2),
                                               seen_at(3.1, 54), seen_at(3.2, 54)});
  EXPECT_NEAR(trial.step_s, 40 * kMilli, 1e-9);
  EXPECT_NEAR(trial.own_s, 33 * kMilli, 1e-9);
  EXPECT_NEAR(trial.longest_own_s, 36 * kMilli, 1e-9);
  EXPECT_EQ(trial.steps, 52U);
}

TEST(TrialTimes, TheFirstSecondOfTrainingIsLeftOutIfThereIsMore) {
  report::Status first = seen_at(2, 5);
  report::Status warm = seen_at(3, 10);
  for (auto* status : {&first, &warm}) status->workers[0].lost_time->compute += 0.8;
  report::Status later = seen_at(4, 35);
  later.workers[0].lost_time->compute += 0.8;
  EXPECT_NEAR(timed(of_two_workers(), {first, warm, later}).step_s, 40 * kMilli, 1e-9);
  EXPECT_GT(timed(of_two_workers(), {first}).step_s, 60 * kMilli);
}

TEST(TrialTimes, WorkersThatWaitForNobodyAddTheirSpeedsUp) {
  report::Status begin = seen_at(1, 1), warm = seen_at(2, 10), end = seen_at(3, 20);
  // In the last second w0 trains 10 batches of 40 ms, w1 40 batches of 10 ms.
  end.workers[1].samples = 16 * 50;
  end.workers[1].lost_time->collective_wait = 0;
  end.workers[1].lost_time->compute =
      warm.workers[1].lost_time->compute + warm.workers[1].lost_time->collective_wait + 0.4;
  const Trial trial = timed(of_two_workers(), {begin, warm, end});
  EXPECT_NEAR(trial.step_s, 32 / (16 / (40 * kMilli) + 16 / (10 * kMilli)), 1e-9);
}

TEST(TrialTimes, ATrialHasNoStepsUntilEachWorkerHasReportedABatch) {
  report::Status one = seen_at(1, 3);
  one.workers[1] = worker("w1", 0, 0, 0);
  EXPECT_EQ(timed(of_two_workers(), {}).steps, 0U);
  EXPECT_EQ(timed(of_two_workers(), {one}).steps, 0U);
  one.workers.pop_back();
  EXPECT_EQ(timed(of_two_workers(), {one}).steps, 0U);
}

TEST(TrialTimes, TheErrorIsThatOfTheMeanOfItsParts) {
  std::vector<report::Status> seen = {seen_at(1, 1)};
  double batches = 5;
  for (int i = 0; i < 6; ++i, batches += 5) seen.push_back(seen_at(2 + 0.25 * i, batches));
  EXPECT_NEAR(timed(of_two_workers(), seen).error, 0, 1e-9);
  EXPECT_TRUE(saw_enough(of_two_workers(), seen));
  // Every second part takes half as long again.
  double more = 0;
  for (std::size_t i = 2; i < seen.size(); ++i) {
    if (i % 2 == 0) more += 0.1;
    for (auto& w : seen[i].workers) w.lost_time->collective_wait += more;
  }
  EXPECT_NEAR(timed(of_two_workers(), seen).error, 0.1, 0.03);
}

TEST(TrialTimes, ATrialGoesOnWhileItHasTooFewReportsToTellItsError) {
  const Trial trial = of_two_workers();
  EXPECT_FALSE(saw_enough(trial, {}));
  EXPECT_FALSE(
      saw_enough(trial, {seen_at(1, 1), seen_at(2, 25), seen_at(2.5, 37), seen_at(2.8, 45)}))
      << "too short";
  EXPECT_FALSE(saw_enough(trial, {seen_at(1, 1), seen_at(2, 2), seen_at(3.5, 3)})) << "one part";
}

}  // namespace
}  // namespace antdt::launcher::plan
