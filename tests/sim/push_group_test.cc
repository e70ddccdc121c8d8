// Jobs with parameter servers, played without packets: the real job and the real closer of steps
// decide, and the workers are numbers.
#include <gtest/gtest.h>

#include <functional>

#include "sim/fleet/player.h"

namespace antdt::fleet::push_group_test {
namespace {

constexpr double kPerSample = 0.01;

// A batch of 100 samples takes a second; worker 0 may be slower.
class OneSlow final : public Speeds {
 public:
  explicit OneSlow(double slowdown) : slowdown_(slowdown) {}
  BatchTime at(std::uint32_t worker, double, std::uint64_t) const override {
    BatchTime time;
    time.per_sample_s = kPerSample;
    if (worker == 0) time.slowdown = slowdown_;
    return time;
  }
  double noise(std::uint32_t, std::uint64_t) const override { return 1; }

 private:
  double slowdown_;
};

Setup job(SyncStrategy sync, std::uint64_t steps, const std::string& solution) {
  Setup setup;
  setup.workers = 4;
  setup.servers = 2;
  setup.solution = std::move(*ctl::make_solution(solution));
  setup.machine.job = "simulated";
  setup.machine.spec.sync = sync;
  setup.machine.spec.servers = 2;
  setup.machine.spec.staleness = 2;
  setup.machine.control.rules.global_batch = 400;
  setup.machine.control.rules.adjust = ctl::Adjust::kSize;
  setup.machine.spec.train_records = steps * 400;
  setup.machine.ledger.train = {setup.machine.spec.train_records, 400, shard_server::Shuffle::kFull,
                                7};
  setup.machine.spec.checkpoint_every = std::chrono::minutes(1);
  return setup;
}

Played play(Setup setup, double slowdown) {
  const OneSlow speeds(slowdown);
  const std::uint64_t records = setup.machine.spec.train_records;
  const std::uint32_t epochs = setup.machine.spec.epochs;
  auto played = Player(std::move(setup), speeds).play();
  EXPECT_TRUE(played) << played.error().message;
  if (!played) return {};
  EXPECT_TRUE(played->ended);
  EXPECT_EQ(played->report.state, JobState::kDone)
      << (played->report.outcome ? played->report.outcome->first_cause : "");
  EXPECT_EQ(played->report.totals.once, records * epochs);
  EXPECT_EQ(played->report.totals.repeated + played->report.totals.lost, 0U);
  return std::move(*played);
}

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

// Does something after 20 s of the job.
class Meddler final : public Onlooker {
 public:
  explicit Meddler(std::function<void(Player&)> what) : what_(std::move(what)) {}
  void begin(Player& player) override {
    player.world().after(std::chrono::seconds(20), [this, &player] { what_(player); });
  }
  void persist(const ctl::job::PersistRecord&) override {}
  void remember(shard_server::history::Entry) override {}
  void end_turn() override {}

 private:
  std::function<void(Player&)> what_;
};

constexpr SyncStrategy kAll[] = {SyncStrategy::kPsBsp, SyncStrategy::kPsSsp, SyncStrategy::kPsAsp};

TEST(PushGroupTest, ALostWorkersRecordsAreTrainedByTheOthersAndItComesBack) {
  for (const SyncStrategy sync : kAll) {
    Meddler kills([](Player& player) { player.kill({'w', 2}, {-1, 9, "", "", ""}); });
    auto setup = job(sync, 60, "none");
    setup.onlooker = &kills;
    setup.machine.spec.budgets["signal"] = 1;
    const Played played = play(std::move(setup), 1);
    EXPECT_EQ(played.report.failures.size(), 1U);
  }
}

TEST(PushGroupTest, AfterALostServerAllGoBackToTheNewestCheckpoint) {
  for (const SyncStrategy sync : kAll) {
    Meddler kills([](Player& player) { player.kill({'s', 1}, {-1, 9, "", "", ""}); });
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
}  // namespace antdt::fleet::push_group_test
