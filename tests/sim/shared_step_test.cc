// Jobs whose members share their steps (docs/sharing), with the messages that this takes.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/permutation.h"
#include "sim/fleet/ideal.h"
#include "sim/fleet/player.h"
#include "tests/sanitized.h"

namespace antdt::fleet {
namespace {

// 32 samples take a second. Worker 0 may be slow in single steps; with normal noise if wanted.
class Alike final : public Speeds {
 public:
  double noise_part = 0;
  double slowdown = 1;     // of worker 0, in one step of ten
  std::uint32_t dies = 0;  // the step for which worker 1 finds no memory; 0: none
  BatchTime at(std::uint32_t worker, double at_s, std::uint64_t step) const override {
    BatchTime time;
    time.per_sample_s = 1.0 / 32;
    if (worker == 0 && step % 10 == 0) time.slowdown = slowdown;
    const bool of_memory = at_s == 0 && step == 0;  // asked once a step
    if (worker == 1 && of_memory && dies > 0 && ++asked_ == dies) time.memory = 1;
    return time;
  }
  double noise(std::uint32_t worker, std::uint64_t batch) const override {
    const auto uniform = [&](std::uint64_t salt) {
      const std::uint64_t draw = combine_seed(combine_seed(worker, batch), salt);
      return (static_cast<double>(draw >> 11) + 0.5) * 0x1p-53;
    };
    const double normal =
        std::sqrt(-2 * std::log(uniform(1))) * std::cos(2 * std::numbers::pi * uniform(2));
    return std::max(0.2, 1 + noise_part * normal);
  }

 private:
  mutable std::uint32_t asked_ = 0;
};

Setup shared_job(std::uint32_t workers, std::uint64_t steps, bool shares) {
  Setup setup;
  setup.workers = workers;
  setup.solution = std::move(*ctl::make_solution("none"));
  setup.machine.job = "simulated";
  setup.machine.control.rules.global_batch = 32 * workers;
  setup.machine.spec.train_records = steps * 32 * workers;
  setup.machine.ledger.train = {setup.machine.spec.train_records, 32 * workers,
                                shard_server::Shuffle::kFull, 7};
  setup.machine.spec.checkpoint_every = std::chrono::minutes(1);
  if (shares) setup.sharing.emplace();
  return setup;
}

Played play_shared(Setup setup, const Speeds& speeds) {
  auto played = Player(std::move(setup), speeds).play();
  EXPECT_TRUE(played) << played.error().message;
  return std::move(played).value_or(Played{});
}

double share_of_ideal(const Played& played, std::uint32_t workers, const Speeds& speeds) {
  const double samples = static_cast<double>(played.report.samples_done);
  return ideal_seconds(speeds, {workers, samples, 32.0 * workers, Costs().exchange_s(workers)}) /
         played.seconds;
}

TEST(SharedStepTest, AStepDoesNotWaitForAMemberThatIsSlowInIt) {
  Alike speeds;
  speeds.slowdown = 4;
  const Played alone = play_shared(shared_job(8, 200, false), speeds);
  const Played shared = play_shared(shared_job(8, 200, true), speeds);
  EXPECT_LT(share_of_ideal(alone, 8, speeds), 0.80);
  EXPECT_GT(share_of_ideal(shared, 8, speeds), 0.95);
  EXPECT_EQ(shared.report.totals.once, 200 * 8 * 32U);
}

TEST(SharedStepTest, AlikeDevicesWithNoiseComeNearTheirIdeal) {
  Alike speeds;
  speeds.noise_part = 0.1;
  const std::uint32_t workers = all_or_some(1000U, 100U);
  const Played alone = play_shared(shared_job(workers, 40, false), speeds);
  const Played shared = play_shared(shared_job(workers, 40, true), speeds);
  EXPECT_LT(share_of_ideal(alone, workers, speeds), 0.82);
  EXPECT_GT(share_of_ideal(shared, workers, speeds), 0.93);
}

TEST(SharedStepTest, NothingIsLostWhereNobodyIsSlow) {
  const Alike speeds;
  const Played alone = play_shared(shared_job(4, 400, false), speeds);
  const Played shared = play_shared(shared_job(4, 400, true), speeds);
  EXPECT_LT(shared.seconds, alone.seconds / 0.995);
}

TEST(SharedStepTest, WhatAMemberReportsIsWhatItComputed) {
  Alike speeds;
  speeds.slowdown = 8;
  const Played shared = play_shared(shared_job(4, 200, true), speeds);
  std::uint64_t samples = 0;
  for (const auto& worker : shared.report.workers) samples += worker.samples;
  EXPECT_EQ(samples, 200 * 4 * 32U);
  EXPECT_LT(shared.report.workers[0].samples, shared.report.workers[1].samples);
}

TEST(SharedStepTest, AMemberThatIsLostInTheMiddleOfAStepLosesNothing) {
  Alike speeds;
  speeds.noise_part = 0.1;
  speeds.dies = 41;
  auto setup = shared_job(4, 60, true);
  setup.machine.spec.budgets["oom"] = 1;
  const Played played = play_shared(std::move(setup), speeds);
  ASSERT_TRUE(played.ended);
  EXPECT_EQ(played.report.state, JobState::kDone) << played.report.outcome->first_cause;
  EXPECT_EQ(played.report.failures.size(), 1U);
  EXPECT_EQ(played.report.totals.once, 60 * 4 * 32U);
  EXPECT_EQ(played.report.totals.repeated + played.report.totals.lost, 0U);
}

TEST(SharedStepTest, TheSameSeedIsTheSameRun) {
  Alike speeds;
  speeds.noise_part = 0.1;
  EXPECT_EQ(play_shared(shared_job(6, 50, true), speeds).seconds,
            play_shared(shared_job(6, 50, true), speeds).seconds);
}

}  // namespace
}  // namespace antdt::fleet
