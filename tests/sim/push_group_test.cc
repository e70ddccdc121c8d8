// Workers that pull and push, played without packets: the real job and the real closer of steps
// decide.
#include <gtest/gtest.h>

#include "tests/sim/servers_job.h"

namespace antdt::fleet::with_servers {
namespace {

TEST(PushGroupTest, WithABarrierAStepTakesAsLongAsItsSlowestWorkerAPullAndAPush) {
  auto setup = job(SyncStrategy::kPsBsp, 100, "none");
  const double step_s = 3 * 100 * kPerSample + 2 * setup.costs.round_trip_s;
  const Played played = play(std::move(setup), 3);
  EXPECT_NEAR(played.seconds, 100 * step_s, 0.02 * 100 * step_s);
  EXPECT_NEAR(static_cast<double>(played.steps), 100, 4);
}

TEST(PushGroupTest, SeveralEpochsAreTrainedWithABarrierAndWithout) {
  for (const SyncStrategy sync :
       {SyncStrategy::kPsBsp, SyncStrategy::kPsSsp, SyncStrategy::kPsAsp}) {
    auto setup = job(sync, 20, "none");
    setup.machine.spec.epochs = 2;
    (void)play(std::move(setup), 1);
  }
}

TEST(PushGroupTest, WithABackupWorkerTheOthersMakeTheSteps) {
  auto setup = job(SyncStrategy::kPsBsp, 500, "backup-workers");
  const double fast_s = 100 * kPerSample + 2 * setup.costs.round_trip_s;
  const Played played = play(std::move(setup), 5);
  // Three workers train nearly everything, and wait for nobody once the solution has decided.
  EXPECT_NEAR(played.seconds, 500 * 4.0 / 3 * fast_s, 0.04 * 500 * 4.0 / 3 * fast_s);
}

TEST(PushGroupTest, WithoutABarrierEveryWorkerTrainsAsFastAsItCan) {
  const Played played = play(job(SyncStrategy::kPsAsp, 300, "none"), 3);
  // 3 + 1/3 fast workers' worth of samples a second.
  const double ideal_s = 300 * 400 * kPerSample / (3 + 1.0 / 3);
  EXPECT_NEAR(played.seconds, ideal_s, 0.04 * ideal_s);
}

TEST(PushGroupTest, WithBoundedStalenessAllAreAsFastAsTheSlowestPushes) {
  const Played played = play(job(SyncStrategy::kPsSsp, 300, "none"), 3);
  const double slowest_s = 300 * 3 * 100 * kPerSample;
  EXPECT_NEAR(played.seconds, slowest_s, 0.04 * slowest_s);
}

TEST(PushGroupTest, BatchesFollowSpeedUnderNd) {
  const Played none = play(job(SyncStrategy::kPsBsp, 300, "none"), 4);
  const Played nd = play(job(SyncStrategy::kPsBsp, 300, "nd"), 4);
  EXPECT_GT(none.seconds, 2 * nd.seconds);
}

constexpr SyncStrategy kAll[] = {SyncStrategy::kPsBsp, SyncStrategy::kPsSsp, SyncStrategy::kPsAsp};

TEST(PushGroupTest, ALostWorkersRecordsAreTrainedByTheOthersAndItComesBack) {
  for (const SyncStrategy sync : kAll) {
    Killer kills({'w', 2});
    auto setup = job(sync, 60, "none");
    setup.onlooker = &kills;
    setup.machine.spec.budgets["signal"] = 1;
    const Played played = play(std::move(setup), 1);
    EXPECT_EQ(played.report.failures.size(), 1U);
  }
}

TEST(PushGroupTest, AfterALostServerAllGoBackToTheNewestCheckpoint) {
  for (const SyncStrategy sync : kAll) {
    Killer kills({'s', 1});
    auto setup = job(sync, 60, "none");
    setup.onlooker = &kills;
    setup.machine.spec.budgets["signal"] = 1;
    setup.machine.spec.checkpoint_every = std::chrono::seconds(5);
    const Played played = play(std::move(setup), 1);
    EXPECT_EQ(played.report.failures.size(), 1U);
    EXPECT_EQ(played.report.lineage, Lineage{2});
  }
}

}  // namespace
}  // namespace antdt::fleet::with_servers
