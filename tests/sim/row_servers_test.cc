// Members of a collective whose rows are on servers, played without packets.
#include <gtest/gtest.h>

#include "tests/sim/servers_job.h"

namespace antdt::fleet::with_servers {
namespace {

TEST(RowServersTest, AStepTakesAsLongAsItsSlowestMemberAndWhatItCosts) {
  auto setup = job(SyncStrategy::kHybrid, 100, "none");
  const double step_s = 3 * 100 * kPerSample + setup.costs.exchange_s(4);
  const Played played = play(std::move(setup), 3);
  EXPECT_NEAR(played.seconds, 100 * step_s, 0.02 * 100 * step_s);
}

TEST(RowServersTest, SeveralEpochsAreTrainedAndTheModelIsWritten) {
  auto setup = job(SyncStrategy::kHybrid, 20, "none");
  setup.machine.spec.epochs = 2;
  const Played played = play(std::move(setup), 1);
  EXPECT_EQ(played.report.generation, Generation{1});
}

TEST(RowServersTest, WorkIsTakenFromAStraggler) {
  const Played none = play(job(SyncStrategy::kHybrid, 300, "none"), 4);
  const Played nd = play(job(SyncStrategy::kHybrid, 300, "nd"), 4);
  EXPECT_GT(none.seconds, 2 * nd.seconds);
}

TEST(RowServersTest, ALostWorkerComesBackAndTheServersKeepTheirRows) {
  Killer kills({'w', 2});
  auto setup = job(SyncStrategy::kHybrid, 60, "none");
  setup.onlooker = &kills;
  setup.machine.spec.budgets["signal"] = 1;
  const Played played = play(std::move(setup), 1);
  EXPECT_EQ(played.report.failures.size(), 1U);
  EXPECT_EQ(played.report.lineage, Lineage{1});
}

TEST(RowServersTest, AfterALostServerBothPartsGoBackToTheNewestCheckpoint) {
  Killer kills({'s', 1});
  auto setup = job(SyncStrategy::kHybrid, 60, "none");
  setup.onlooker = &kills;
  setup.machine.spec.budgets["signal"] = 1;
  setup.machine.spec.checkpoint_every = std::chrono::seconds(5);
  const Played played = play(std::move(setup), 1);
  EXPECT_EQ(played.report.failures.size(), 1U);
  EXPECT_EQ(played.report.lineage, Lineage{2});
  // What five seconds have trained at most is trained again, and two starts cost time.
  EXPECT_LT(played.seconds, 60 + 8);
}

}  // namespace
}  // namespace antdt::fleet::with_servers
