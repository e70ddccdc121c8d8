// Jobs with many workers, played without packets: things take the time that they take in reality,
// and the real job decides.
#include <gtest/gtest.h>

#include "core/permutation.h"
#include "sim/fleet/drill_speeds.h"
#include "sim/fleet/ideal.h"
#include "sim/fleet/recorded_speeds.h"
#include "sim/fleet/result.h"
#include "tests/sanitized.h"

namespace antdt::fleet {
namespace {

constexpr double kPerSample = 0.01;

// Worker 0 has a fraction of the others' speed; with noise if wanted.
class OneSlow final : public Speeds {
 public:
  double slowdown = 1;
  double noise_part = 0;
  std::uint64_t seed = 1;
  std::uint32_t memory = 0;
  BatchTime at(std::uint32_t worker, double, std::uint64_t) const override {
    BatchTime time;
    time.per_sample_s = kPerSample;
    time.memory = memory;
    if (worker == 0) time.slowdown = slowdown;
    return time;
  }
  double noise(std::uint32_t worker, std::uint64_t batch) const override {
    const std::uint64_t draw = combine_seed(combine_seed(seed, worker), batch);
    return 1 + noise_part * (static_cast<double>(draw >> 11) * 0x1p-52 - 1);
  }
};

// Steps take one second if no worker is slow.
Setup job(std::uint32_t workers, std::uint64_t steps, const std::string& solution) {
  Setup setup;
  setup.workers = workers;
  setup.solution = std::move(*ctl::make_solution(solution));
  setup.machine.job = "simulated";
  setup.machine.control.rules.global_batch = 100 * workers;
  setup.machine.spec.train_records = steps * 100 * workers;
  setup.machine.ledger.train = {setup.machine.spec.train_records, 1000,
                                shard_server::Shuffle::kFull, 7};
  setup.machine.spec.checkpoint_every = std::chrono::minutes(1);
  return setup;
}

Played play(Setup setup, const Speeds& speeds) {
  auto played = Player(std::move(setup), speeds).play();
  EXPECT_TRUE(played) << played.error().message;
  return std::move(played).value_or(Played{});
}

TEST(FleetTest, AJobIsPlayedToItsEndAndEveryRecordIsTrainedOnce) {
  auto setup = job(4, 50, "none");
  setup.machine.spec.epochs = 2;
  const Played played = play(std::move(setup), OneSlow());
  ASSERT_TRUE(played.ended);
  EXPECT_EQ(played.report.state, JobState::kDone) << played.report.outcome->first_cause;
  EXPECT_EQ(played.report.totals.once, 2 * 50 * 400U);
  EXPECT_EQ(played.report.generation, Generation{1}) << "nobody joins again between two epochs";
  EXPECT_EQ(played.report.totals.repeated + played.report.totals.lost, 0U);
}

TEST(FleetTest, AStepTakesAsLongAsItsSlowestMember) {
  OneSlow speeds;
  speeds.slowdown = 3;
  const Played played = play(job(4, 100, "none"), speeds);
  ASSERT_TRUE(played.ended);
  const double step = 3 * 100 * kPerSample + Costs().exchange_s(4);
  EXPECT_NEAR(played.seconds, 100 * step, 0.02 * 100 * step);
}

TEST(FleetTest, TheTimeOfAJobThatIsCutShortIsThatOfWhatItTrained) {
  for (const int limit_s : {10, 30}) {  // in the first epoch, and in the second one
    auto setup = job(4, 20, "none");
    setup.machine.spec.epochs = 3;
    setup.limit = std::chrono::seconds(limit_s);
    const Played played = play(std::move(setup), OneSlow());
    EXPECT_FALSE(played.ended);
    const auto samples = static_cast<double>(played.report.samples_done);
    const double ideal = ideal_seconds(OneSlow(), {4, samples, 400, Costs().exchange_s(4)});
    EXPECT_GT(ideal, 0.8 * limit_s);
    EXPECT_GT(played.seconds, 0.999 * ideal) << "nothing is faster than the best that there is";
    EXPECT_NEAR(played.seconds, ideal, 0.05 * ideal);
  }
}

TEST(FleetTest, AMeasuredCostGrowsWithTheRoundsOfTheCollective) {
  Costs costs;
  EXPECT_EQ(costs.scaled_s(0.006, 100), 0.006) << "measured with as many members";
  costs.measured_members = 4;
  EXPECT_NEAR(costs.scaled_s(0.006, 4), 0.006, 1e-12);
  EXPECT_NEAR(costs.scaled_s(0.006, 3), 0.006, 1e-12);
  EXPECT_NEAR(costs.scaled_s(0.006, 2), 0.003, 1e-12);
  EXPECT_NEAR(costs.scaled_s(0.006, 1), 0, 1e-12);
  EXPECT_NEAR(costs.scaled_s(0.006, 8), 0.009, 1e-12);
}

TEST(FleetTest, WorkIsTakenFromAStragglerAndTheJobComesNearItsIdeal) {
  OneSlow speeds;
  speeds.slowdown = 8;
  const std::uint32_t steps = all_or_some(1000U, 500U);
  const Played none = play(job(8, steps, "none"), speeds);
  const Played nd = play(job(8, steps, "nd"), speeds);
  ASSERT_TRUE(none.ended && nd.ended);
  EXPECT_GE(applied_actions(nd), 1U);
  EXPECT_GT(none.seconds, 3 * nd.seconds);
  const double ideal = ideal_seconds(speeds, {8, steps * 800ULL, 800, Costs().exchange_s(8)});
  EXPECT_GT(nd.seconds, 0.999 * ideal) << "nothing is faster than the best that there is";
  EXPECT_GT(ideal / nd.seconds, 0.9);
}

TEST(FleetTest, TheSameSeedIsTheSameRun) {
  OneSlow speeds;
  speeds.slowdown = 2;
  speeds.noise_part = 0.1;
  const Played once = play(job(6, 200, "nd"), speeds);
  const Played again = play(job(6, 200, "nd"), speeds);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_EQ(once.messages, again.messages);
  EXPECT_EQ(once.journal_bytes, again.journal_bytes);
  speeds.seed = 2;
  EXPECT_NE(play(job(6, 200, "nd"), speeds).seconds, once.seconds);
}

TEST(FleetTest, AWorkerWhoseMicroBatchDoesNotFitItsDeviceDies) {
  OneSlow speeds;
  speeds.memory = 64;
  const Played played = play(job(2, 10, "none"), speeds);
  ASSERT_TRUE(played.ended);
  EXPECT_EQ(played.report.state, JobState::kFailed);
  EXPECT_EQ(played.report.outcome->exit_class, ctl::ExitClass::kOom);
}

TEST(FleetTest, ALostWorkerComesBackAndNothingIsLost) {
  // The first attempt does not fit; later attempts have more memory.
  class Grows final : public Speeds {
   public:
    BatchTime at(std::uint32_t worker, double, std::uint64_t) const override {
      BatchTime time;
      time.per_sample_s = kPerSample;
      time.memory = worker == 1 && ++asked == 41 ? 1 : 0;
      return time;
    }
    double noise(std::uint32_t, std::uint64_t) const override { return 1; }
    mutable int asked = 0;
  };
  auto setup = job(4, 50, "none");
  setup.machine.spec.budgets["oom"] = 1;
  const Grows speeds;
  const Played played = play(std::move(setup), speeds);
  ASSERT_TRUE(played.ended);
  EXPECT_EQ(played.report.state, JobState::kDone) << played.report.outcome->first_cause;
  EXPECT_EQ(played.report.failures.size(), 1U);
  EXPECT_EQ(played.report.totals.once, 50 * 400U);
  EXPECT_EQ(played.report.totals.repeated + played.report.totals.lost, 0U);
}

// Costs that grow with the square of the members would show here, in time and in memory.
TEST(FleetTest, TenThousandWorkersTrain) {
  OneSlow speeds;
  speeds.slowdown = 3;
  speeds.noise_part = 0.05;
  const std::uint32_t workers = all_or_some(10'000U, 1000U);
  auto setup = job(workers, 1000, "nd");
  setup.machine.ledger.train.shard_records = 1'000'000;
  setup.limit = std::chrono::seconds(30);
  const Played played = play(std::move(setup), speeds);
  EXPECT_GE(played.steps, 5U);
  EXPECT_EQ(played.report.workers.size(), workers);
  EXPECT_EQ(played.report.generation, Generation{1});
}

TEST(DrillSpeedsTest, RulesAndDevicesRepeatInALargerFleet) {
  drill::Emulation emulation;
  drill::Device fast;
  fast.name = "fast";
  fast.workers = {"w0"};
  fast.per_sample = std::chrono::milliseconds(1);
  drill::Device slow;
  slow.name = "slow";
  slow.flat = std::chrono::milliseconds(10);
  slow.flat_until = 4;
  slow.per_sample = std::chrono::milliseconds(4);
  emulation.devices = {fast, slow};
  drill::Rule rule;
  rule.workers = {"w1"};
  rule.slowdown = 2;
  rule.delay = std::chrono::milliseconds(3);
  rule.delay_per_sample = std::chrono::microseconds(500);
  rule.from = std::chrono::seconds(10);
  const auto speeds = DrillSpeeds::make(emulation, {rule}, {}, 2, {"a", "a", "a", "a"}, 1);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_NEAR(speeds->at(2, 20, 0).seconds(8), 0.008, 1e-9) << "w2 is another w0";
  EXPECT_NEAR(speeds->at(3, 5, 0).seconds(8), 0.010 + 4 * 0.004, 1e-9);
  const double slowed = (0.010 + 4 * 0.004 + 0.003 + 8 * 0.0005) * 2;
  EXPECT_NEAR(speeds->at(3, 20, 0).seconds(8), slowed, 1e-6) << "w3 is another w1";
}

TEST(DrillSpeedsTest, AWorkerWithoutADeviceIsAnErrorThatNamesTheSetting) {
  const auto speeds = DrillSpeeds::make({}, {}, {}, 1, {"a"}, 1);
  ASSERT_FALSE(speeds);
  EXPECT_NE(speeds.error().message.find("[[emulated.device]]"), std::string::npos);
}

TEST(IdealTest, AllWorkersShareTheBatchSoThatTheyEndTogether) {
  BatchTime fast;
  fast.per_sample_s = 0.001;
  BatchTime slow;
  slow.flat_s = 0.02;
  slow.per_sample_s = 0.004;
  // 1000 T + (T - 0.02) / 0.004 = 100
  const double expected = (100 + 0.02 / 0.004) / (1 / 0.001 + 1 / 0.004);
  EXPECT_NEAR(best_step_s(std::vector{fast, slow}, 100), expected, 1e-5);
  EXPECT_NEAR(best_step_s(std::vector{fast, slow}, 100, expected * 0.99), expected, 1e-5);
  EXPECT_NEAR(best_step_s(std::vector{fast, slow}, 100, expected * 9), expected, 1e-5);
}

TEST(IdealTest, AMemoryLimitThatMattersMakesSeveralMicroBatches) {
  BatchTime time;
  time.flat_s = 0.01;
  time.flat_until = 4;
  time.per_sample_s = 0.001;
  time.memory = 16;
  for (const double seconds : {0.005, 0.01, 0.02, 0.03, 0.05, 0.071, 0.2}) {
    double best = 0;  // by trying every number of equal micro-batches
    for (int count = 1; count <= 20; ++count) {
      for (int size = 1; size <= 1600; ++size) {
        const double samples = size / 100.0;
        if (count * time.seconds(samples) <= seconds) best = std::max(best, count * samples);
      }
    }
    EXPECT_GE(most_samples(time, seconds), best - 1e-9) << seconds;
    EXPECT_LE(most_samples(time, seconds), best + 0.25) << seconds;
  }
}

TEST(IdealTest, ATemporarySlowdownCostsOnlyItsDuration) {
  class Pause final : public Speeds {
   public:
    BatchTime at(std::uint32_t, double at_s, std::uint64_t) const override {
      BatchTime time;
      time.per_sample_s = 0.01;
      time.slowdown = at_s >= 10 && at_s < 20 ? 2 : 1;
      return time;
    }
    double noise(std::uint32_t, std::uint64_t) const override { return 1; }
  };
  // Two workers at 100 samples a second each, half as fast for ten seconds.
  EXPECT_NEAR(ideal_seconds(Pause(), {2, 4000, 20, 0}), 25, 0.2);
}

TEST(IdealTest, ARecordedCostOfAStepIsThatOfItsMoment) {
  class Congested final : public Speeds {
   public:
    BatchTime at(std::uint32_t, double, std::uint64_t) const override {
      BatchTime time;
      time.per_sample_s = 0.01;
      return time;
    }
    double noise(std::uint32_t, std::uint64_t) const override { return 1; }
    std::optional<double> step_cost_s(double at_s) const override { return at_s < 10 ? 0.4 : 0.1; }
  };
  // A step computes for 0.1 s; 20 of 0.5 s, then of 0.2 s. The constant cost is not asked for.
  EXPECT_NEAR(ideal_seconds(Congested(), {2, 40 * 20, 20, 99}), 20 * 0.5 + 20 * 0.2, 1e-3);
  // Half as many members as were measured need half the rounds.
  EXPECT_NEAR(ideal_seconds(Congested(), {2, 20 * 20, 20, 99, 0.5}), 20 * 0.3, 1e-3);
}

// ---- recorded speeds

// One second of two workers: w0 with `batches` of `samples` in `own_s` each, w1 as fast as
// it ever was, with batches of 10 in 0.1 s.
shard_server::Moment second(double from_s, std::uint64_t batches, std::uint64_t samples,
                            double own_s) {
  shard_server::Moment m;
  m.from_s = from_s;
  m.seconds = 1;
  const auto us = static_cast<std::uint64_t>(own_s * 1e6);
  shard_server::WorkerMoment w0, w1;
  w0.member = {{'w', 0}, Attempt{1}};
  w0.batches = batches;
  w0.samples = batches * samples;
  w0.data_us = batches * us / 4;
  w0.compute_us = batches * us - w0.data_us;
  w0.wait_us = batches * 2000;
  w0.accumulation = 1;
  w1 = w0;
  w1.member.worker.index = 1;
  w1.samples = batches * 10;
  w1.data_us = 0;
  w1.compute_us = batches * 100'000;
  w1.wait_us = batches * 50'000;
  m.workers = {w0, w1};
  return m;
}

TEST(RecordedSpeedsTest, TimeIsInProportionIfAllBatchesWereEqual) {
  shard_server::Series series;
  for (int s = 0; s < 10; ++s) series.moments.push_back(second(s, 5, 20, s < 5 ? 0.1 : 0.3));
  const auto speeds = RecordedSpeeds::make(series, 3);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_EQ(speeds->seconds(), 10);
  EXPECT_NEAR(speeds->usual_step_cost_s(), 0.002, 1e-9);
  EXPECT_NEAR(speeds->step_cost_s(3).value_or(0), 0.002, 1e-9);
  EXPECT_NEAR(speeds->at(0, 2, 0).seconds(20), 0.1, 1e-6);
  EXPECT_NEAR(speeds->at(0, 2, 0).seconds(40), 0.2, 1e-6);
  EXPECT_NEAR(speeds->at(0, 7.5, 0).seconds(20), 0.3, 1e-6);
  EXPECT_NEAR(speeds->at(0, 99, 0).seconds(20), 0.3, 1e-6) << "as at the end";
  EXPECT_NEAR(speeds->at(1, 7.5, 0).seconds(10), 0.1, 1e-6);
  EXPECT_NEAR(speeds->at(2, 0, 0).seconds(1000),
              std::max(speeds->at(0, 99, 0).per_sample_s, speeds->at(1, 0, 0).per_sample_s) * 1000,
              1e-6)
      << "who never reported is like the others";
}

TEST(RecordedSpeedsTest, TheCostOfAStepIsThatOfItsMoment) {
  shard_server::Series series;
  for (int s = 0; s < 10; ++s) {
    series.moments.push_back(second(s, 5, 20, 0.1));
    for (shard_server::WorkerMoment& w : series.moments.back().workers) {
      w.wait_us = w.batches * (s < 5 ? 2'000 : 7'000);
    }
  }
  const auto speeds = RecordedSpeeds::make(series, 2);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_NEAR(speeds->step_cost_s(1).value_or(0), 0.002, 1e-9);
  EXPECT_NEAR(speeds->step_cost_s(8).value_or(0), 0.007, 1e-9);
  EXPECT_NEAR(speeds->step_cost_s(88).value_or(0), 0.007, 1e-9);
}

TEST(RecordedSpeedsTest, AFixedPartShowsInBatchesThatDiffer) {
  shard_server::Series series;
  for (int s = 0; s < 10; ++s) {
    const std::uint64_t samples = s < 5 ? 20 : 60;
    series.moments.push_back(second(s, 5, samples, 0.05 + 0.01 * static_cast<double>(samples)));
  }
  const auto speeds = RecordedSpeeds::make(series, 2);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_NEAR(speeds->at(0, 2, 0).seconds(100), 1.05, 1e-3);
}

TEST(RecordedSpeedsTest, ASlowdownThatMovedTheBatchIsNoFixedPart) {
  shard_server::Series series;
  for (int s = 0; s < 10; ++s) {
    series.moments.push_back(s < 5 ? second(s, 5, 60, 0.6) : second(s, 5, 20, 0.6));
  }
  const auto speeds = RecordedSpeeds::make(series, 2);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_NEAR(speeds->at(0, 2, 0).seconds(30), 0.3, 1e-6);
  EXPECT_NEAR(speeds->at(0, 8, 0).seconds(30), 0.9, 1e-6);
}

TEST(RecordedSpeedsTest, SecondsInWhichNobodyReportedAreLeftOut) {
  shard_server::Series series;
  series.moments = {second(0, 5, 20, 0.1), second(1, 5, 20, 0.1), second(50, 5, 20, 0.4)};
  const auto speeds = RecordedSpeeds::make(series, 2);
  ASSERT_TRUE(speeds) << speeds.error().message;
  EXPECT_NEAR(speeds->at(0, 2.5, 0).seconds(20), 0.4, 1e-6);
}

TEST(RecordedSpeedsTest, AfterTheRecordingTheWorkersAreAsAtItsEndOrAsUsual) {
  shard_server::Series series;
  for (int s = 0; s < 100; ++s) series.moments.push_back(second(s, 5, 20, s < 90 ? 0.1 : 0.4));
  const auto at_end = RecordedSpeeds::make(series, 2);
  ASSERT_TRUE(at_end) << at_end.error().message;
  EXPECT_NEAR(at_end->at(0, 200, 0).seconds(20), 0.4, 1e-6);
  const auto usual = RecordedSpeeds::make(series, 2, Afterwards::kAsUsual);
  ASSERT_TRUE(usual) << usual.error().message;
  EXPECT_NEAR(usual->at(0, 200, 0).seconds(20), 0.1, 1e-6);
  EXPECT_NEAR(usual->at(0, 95, 0).seconds(20), 0.4, 1e-6) << "what is recorded counts";
  EXPECT_NEAR(usual->seconds_per_sample(0), (90 * 0.1 + 10 * 0.4) / 100 / 20, 1e-6);
}

TEST(RecordedSpeedsTest, ARunThatRecordedNothingCannotBeReplayed) {
  EXPECT_FALSE(RecordedSpeeds::make({}, 2));
}

TEST(ComparisonTest, ItsJsonHasTheFieldsOfTheBench) {
  Comparison line;
  line.situation = "mix";
  line.solution = "nd";
  line.job_seconds = 20;
  line.ideal_seconds = 15;
  const std::string json = to_json({line});
  for (const char* field :
       {"situation", "solution", "workers", "job_seconds", "ideal_seconds", "share_of_ideal",
        "speedup_over_none", "actions", "records_repeated", "records_lost"}) {
    EXPECT_NE(json.find(fmt::format("\"{}\":", field)), std::string::npos) << field;
  }
  EXPECT_NE(json.find("\"share_of_ideal\": 0.75"), std::string::npos) << json;
  EXPECT_NE(json.find("\"speedup_over_none\": null"), std::string::npos) << json;
}

}  // namespace
}  // namespace antdt::fleet
