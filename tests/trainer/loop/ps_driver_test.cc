// Workers of parameter servers from join to bye, against real servers and a small
// job daemon over ipc; the model counts how often each record entered it.
#include "trainer/loop/ps_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>

#include "tests/trainer/fake_ps_job.h"
#include "tests/trainer/loop/testing.h"
#include "trainer/loop/leave_watch.h"

namespace antdt::trainer {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

const WorkerId kW0{'w', 0};
const WorkerId kW1{'w', 1};

constexpr Duration kPatience = std::chrono::seconds(60);

// Waits for the condition; fails the test instead of waiting for ever.
template <class Condition>
bool await(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "this did not come";
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

// The values that evaluations saw on the servers, by record, in the order in which they came.
struct Evaluated {
  std::mutex mutex;
  std::map<std::int64_t, std::vector<float>> counts;
  std::vector<float> dense;
};

// Adds one to the row of each record, and the number of records to the first of two
// dense parameters, which begin at 5 and 7.
class RowTally final : public PsModel {
 public:
  // `computed`: batches before this one.
  using Hook = std::function<void(std::uint64_t computed, const client::Client& client)>;
  RowTally(Evaluated& evaluated, const client::Client& client, Hook hook)
      : evaluated_(evaluated), client_(client), hook_(std::move(hook)) {}

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }
  [[nodiscard]] std::vector<ps::TableGradient> first_values() const override {
    return {{1, {{0}, {5, 7}}}};
  }
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const override {
    std::vector<std::uint64_t> keys(batch.ids.begin(), batch.ids.end());
    std::sort(keys.begin(), keys.end());
    return {{0, std::move(keys)}, {1, {0}}};
  }
  [[nodiscard]] Result<Computed> compute(const data::Examples& batch,
                                         const std::vector<ps::TableKeys>& rows,
                                         const std::vector<std::vector<float>>& values) override {
    EXPECT_EQ(values.at(0).size(), rows.at(0).keys.size());
    EXPECT_EQ(values.at(1).size(), 2U);
    if (hook_) hook_(batches_.size(), client_);
    batches_.push_back(batch.ids);
    const auto count = static_cast<float>(batch.count);
    Computed computed;
    computed.gradients.push_back({0, {rows[0].keys, std::vector<float>(batch.count, 1)}});
    computed.gradients.push_back({1, {{0}, {count, 0}}});
    computed.sums = {count, 2 * count};
    return computed;
  }
  [[nodiscard]] Result<wire::EvalPartial> evaluate(
      const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
      const std::vector<std::vector<float>>& values) override {
    const std::lock_guard lock(evaluated_.mutex);
    for (std::size_t i = 0; i < rows[0].keys.size(); ++i) {
      const auto record = static_cast<std::int64_t>(rows[0].keys[i]);
      evaluated_.counts[record].push_back(values[0][i]);
    }
    evaluated_.dense = values[1];
    wire::EvalPartial partial;
    partial.records = batch.count;
    return partial;
  }

  std::vector<std::vector<std::int64_t>> batches_;  // that were computed, late ones too

 private:
  Evaluated& evaluated_;
  const client::Client& client_;
  Hook hook_;
  const std::vector<wire::PsTable> tables_{{"tally", 1, "sum", 0, 0, 0, "zero", 0},
                                           {"dense", 2, "sum", 0, 0, 0, "zero", 0}};
};

struct Life {
  Result<int> code = 0;
  std::vector<std::vector<std::int64_t>> batches;
  wire::TimeAccount account;
  Duration wall{};
};

struct PsDrill {
  FakePsJob& job;
  std::uint64_t records = 0;
  std::vector<RowTally::Hook> hooks = {};  // by worker
  std::vector<drill::Rule> rules_of_w0 = {};
};

class PsMemberDrill {
 protected:
  // One worker's life, in this thread.
  Life live(const PsDrill& drill, std::uint32_t index) {
    Life life;
    const SteadyClock clock;
    const MonoTime began = clock.now();
    TimeAccount account(clock, began);
    GenerationGuard guard;
    transport::Context context;
    Numbers train(drill.records);
    Numbers eval(drill.records);
    auto client = client::Client::connect(drill.job.environment(index), kPatience);
    if (!client) return {tl::unexpected(client.error()), {}, {}, {}};
    data::Prefetcher prefetcher([&](std::uint64_t most, Duration timeout) {
      auto some = (*client)->take(most, timeout);
      if (some) taken += some->records;
      return some;
    });
    RowTally model(evaluated, **client,
                   index < drill.hooks.size() ? drill.hooks[index] : RowTally::Hook{});
    Injected injected(
        clock,
        {index == 0 ? drill.rules_of_w0 : std::vector<drill::Rule>{}, {{'w', index}, "a"}, 1});
    PsDriver member(
        {clock, **client, model, context, prefetcher, account, injected, guard, stop[index]},
        {&train, &eval, {}, 1, 64});
    life.code = member.run();
    life.batches = model.batches_;
    life.account = account.seconds();
    life.wall = clock.now() - began;
    return life;
  }
  // Runs until all workers have ended; the rest are ended.
  std::vector<Life> run(const PsDrill& drill, std::uint32_t workers,
                        const std::function<void()>& meanwhile = {}) {
    std::vector<std::future<Life>> lives;
    for (std::uint32_t index = 0; index < workers; ++index) {
      lives.push_back(std::async(std::launch::async, [&, index] { return live(drill, index); }));
    }
    if (meanwhile) meanwhile();
    std::vector<Life> ended;
    for (auto& life : lives) {
      if (life.wait_for(kPatience) != std::future_status::ready) {
        ADD_FAILURE() << "a worker does not end";
        drill.job.give_up();
      }
      ended.push_back(life.get());
    }
    for (std::uint32_t i = 0; i < workers; ++i) {
      await([&] { return drill.job.seen().byes.contains({'w', i}); });
    }
    return ended;
  }
  void expect_each_record(std::uint64_t records, const std::vector<float>& counts) {
    ASSERT_EQ(evaluated.counts.size(), records);
    for (const auto& [record, seen] : evaluated.counts) {
      ASSERT_EQ(seen, counts) << "record " << record;
    }
    EXPECT_THAT(evaluated.dense, ElementsAre(5 + counts.back() * static_cast<float>(records), 7));
  }
  static void expect_codes(const std::vector<Life>& lives, const std::vector<int>& codes) {
    ASSERT_EQ(lives.size(), codes.size());
    for (std::size_t i = 0; i < lives.size(); ++i) {
      ASSERT_TRUE(lives[i].code) << lives[i].code.error().message;
      EXPECT_EQ(*lives[i].code, codes[i]) << "w" << i;
    }
  }

  Evaluated evaluated;
  std::array<std::atomic<bool>, 2> stop{};
  std::atomic<std::uint64_t> taken = 0;  // to be trained or evaluated
};

class PsMemberTest : public PsMemberDrill, public ::testing::Test {};

// Under each way to wait for the others.
class EveryPsMemberTest : public PsMemberDrill, public ::testing::TestWithParam<SyncStrategy> {
 protected:
  static PsFaults none() {
    PsFaults faults;
    faults.sync = GetParam();
    faults.staleness = 2;
    return faults;
  }
};
INSTANTIATE_TEST_SUITE_P(Syncs, EveryPsMemberTest,
                         ::testing::Values(SyncStrategy::kPsBsp, SyncStrategy::kPsSsp,
                                           SyncStrategy::kPsAsp),
                         [](const auto& sync) {
                           return std::string(name_of(sync.param).substr(3));
                         });

TEST_P(EveryPsMemberTest, EveryRecordIsAppliedOnceAnEpochAndAnEvaluationSeesAllSteps) {
  constexpr std::uint64_t kRecords = 503;
  FakePsJob job(2,
                {{wire::PhaseKind::kTrain, kRecords},
                 {wire::PhaseKind::kEval, kRecords},
                 {wire::PhaseKind::kTrain, kRecords},
                 {wire::PhaseKind::kEval, kRecords}},
                none());
  expect_codes(run({job, kRecords}, 2), {0, 0});
  expect_each_record(kRecords, {1, 2});
  const FakePsJob::Seen seen = job.seen();
  EXPECT_EQ(seen.evaluated, 2 * kRecords);
  EXPECT_EQ(seen.committed, 4 * kRecords);
  EXPECT_EQ(seen.byes.at(kW0).samples_total + seen.byes.at(kW1).samples_total, 2 * kRecords);
  for (const std::size_t epoch : {0U, 1U}) {
    wire::Progress sum;
    for (const WorkerId worker : {kW0, kW1}) {
      const wire::Progress& own = seen.done.at(worker).at(epoch);
      EXPECT_EQ(own.plan, PlanVersion{1});
      EXPECT_EQ(own.place, own.samples);
      sum.samples += own.samples;
      sum.loss_sum += own.loss_sum;
      sum.weight_sum += own.weight_sum;
      sum.step = std::max(sum.step, own.step);
    }
    EXPECT_EQ(sum.samples, kRecords);
    EXPECT_DOUBLE_EQ(sum.loss_sum, 2.0 * kRecords);
    EXPECT_DOUBLE_EQ(sum.weight_sum, 1.0 * kRecords);
    EXPECT_GE(sum.step.value, (epoch + 1) * kRecords / 20);
  }
}

TEST_P(EveryPsMemberTest, NobodyWaitsForAWorkerThatHasNoRecords) {
  PsFaults faults = none();
  faults.starved = {kW1};
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 100}, {wire::PhaseKind::kEval, 100}}, faults);
  const auto lives = run({job, 100}, 2);
  expect_codes(lives, {0, 0});
  expect_each_record(100, {1});
  EXPECT_THAT(lives[1].batches, ::testing::IsEmpty());
  EXPECT_EQ(job.seen().done.at(kW1).at(0).samples, 0U);
  EXPECT_GE(job.seen().done.at(kW1).at(0).step, Step{10}) << "idle it hears of the steps";
}

TEST_F(PsMemberTest, WithBoundedStalenessTheFastWorkerStopsAtTheBound) {
  PsFaults faults;
  faults.sync = SyncStrategy::kPsSsp;
  faults.staleness = 2;
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 200}, {wire::PhaseKind::kEval, 200}}, faults);
  std::atomic<bool> slow_has_begun = false;
  std::atomic<bool> slow_goes_on = false;
  std::atomic<std::uint64_t> ahead = 0;
  const auto fast = [&](std::uint64_t computed, const client::Client&) {
    if (computed == 0) await([&] { return slow_has_begun.load(); });
    if (!slow_goes_on) ahead = computed + 1;
  };
  const auto slow = [&](std::uint64_t computed, const client::Client&) {
    slow_has_begun = true;
    if (computed != 0) return;
    // Its third push is applied, and the next one would be too far ahead.
    await([&] { return job.seen().progress[kW0].samples >= 30; });
    slow_goes_on = true;
  };
  expect_codes(run({job, 200, {fast, slow}}, 2), {0, 0});
  EXPECT_EQ(ahead, 3U);
  expect_each_record(200, {1});
}

// Measures how much staler the rows of a worker that trains alone are: by the pushes that it made
// between their pull and its own. The next batch is always fetched here.
class PsOverlapTest : public PsMemberDrill, public ::testing::Test {
 protected:
  wire::PsStats train_alone(const PsFaults& faults) {
    constexpr std::uint64_t kRecords = 400;
    FakePsJob job(1, {{wire::PhaseKind::kTrain, kRecords}}, faults);
    const auto wait_for_records = [&](std::uint64_t computed, const client::Client&) {
      // One batch in training, and those that are read in advance.
      await([&] { return taken >= std::min(kRecords, (computed + 4) * 10); });
    };
    expect_codes(run({job, kRecords, {wait_for_records}}, 1), {0});
    const wire::PsStats stats = job.stats().at(0);
    EXPECT_EQ(stats.staleness_pushes, kRecords / 10);
    return stats;
  }
};

TEST_F(PsOverlapTest, WithoutABoundTheNextBatchIsPulledBeforeThisOneIsPushed) {
  PsFaults faults;
  faults.sync = SyncStrategy::kPsAsp;
  const wire::PsStats stats = train_alone(faults);
  EXPECT_GE(stats.staleness_sum, stats.staleness_pushes - 1) << "all but the first";
  EXPECT_LE(stats.staleness_max, 3U) << "and two pushes of its own may be under way";
}

TEST_F(PsOverlapTest, WithBoundedStalenessTheNextBatchIsPulledAsFarAheadAsTheBoundAllows) {
  PsFaults faults;
  faults.sync = SyncStrategy::kPsSsp;
  for (const std::uint64_t bound : {0U, 1U}) {
    faults.staleness = bound;
    taken = 0;
    const wire::PsStats stats = train_alone(faults);
    EXPECT_EQ(stats.staleness_max, bound);
    EXPECT_GE(stats.staleness_sum + 1, bound * stats.staleness_pushes);
  }
}

TEST_F(PsOverlapTest, WithABarrierPulledRowsContainTheStepBefore) {
  EXPECT_EQ(train_alone({}).staleness_max, 0U);
}

// Without staleness both do one push at a time. If w1 began at its first number, w0 would have to
// wait until it had caught up.
TEST_F(PsMemberTest, AWorkerThatWasIdleGoesOnAtTheStepOfTheOthers) {
  PsFaults faults;
  faults.sync = SyncStrategy::kPsSsp;
  faults.starved = {kW1};
  // More records than w0 may hold before w1 is fed, however fast or slow it is.
  constexpr std::uint64_t kRecords = 2000;
  FakePsJob job(2, {{wire::PhaseKind::kTrain, kRecords}, {wire::PhaseKind::kEval, kRecords}},
                faults);
  std::atomic<std::uint64_t> of_w1 = 0;
  const auto w0 = [&](std::uint64_t computed, const client::Client&) {
    if (computed == 6) {
      job.feed(kW1);
      await([&] { return of_w1 > 0; });
    }
    if (computed == 10) {
      EXPECT_LE(of_w1, 6U);
    }
  };
  const auto w1 = [&](std::uint64_t computed, const client::Client&) { of_w1 = computed + 1; };
  expect_codes(run({job, kRecords, {w0, w1}}, 2), {0, 0});
  expect_each_record(kRecords, {1});
}

// Both have begun, and the other one has made a step alone, before w1's first push.
TEST_F(PsMemberTest, TheRecordsOfAPushThatComesLateAreTrainedByAnother) {
  PsFaults faults;
  faults.backups = 1;
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 200}, {wire::PhaseKind::kEval, 200}}, faults);
  std::atomic<bool> slow_has_begun = false;
  std::atomic<bool> fast_has_stepped = false;
  const auto fast = [&](std::uint64_t computed, const client::Client&) {
    if (computed == 0) await([&] { return slow_has_begun.load(); });
    if (computed == 1) fast_has_stepped = true;
  };
  const auto slow = [&](std::uint64_t computed, const client::Client&) {
    slow_has_begun = true;
    if (computed == 0) await([&] { return fast_has_stepped.load(); });
  };
  const auto lives = run({job, 200, {fast, slow}}, 2);
  expect_codes(lives, {0, 0});
  expect_each_record(200, {1});
  ASSERT_GE(lives[1].batches.size(), 1U);
  EXPECT_GE(job.seen().late, lives[1].batches[0].size());
  const auto has = [](const auto& life, std::int64_t record) {
    return std::ranges::any_of(life.batches, [&](const auto& batch) {
      return std::ranges::find(batch, record) != batch.end();
    });
  };
  for (const std::int64_t record : lives[1].batches[0]) EXPECT_TRUE(has(lives[0], record));
}

TEST_F(PsMemberTest, AnAbortReleasesAPushThatWaitsForOthersAndTheNextGroupIsJoined) {
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 200}, {wire::PhaseKind::kEval, 200}});
  const auto hook = [&](std::uint64_t computed, const client::Client&) {
    if (computed != 2) return;
    job.end_group("the test");
    // No step is made without this worker, so the other one waits for it.
    await([&] { return job.seen().left[kW0].contains(Generation{1}); });
  };
  expect_codes(run({job, 200, {{}, hook}}, 2), {0, 0});
  EXPECT_EQ(job.seen().generation, Generation{2});
  expect_each_record(200, {1});
}

TEST_F(PsMemberTest, ServersThatNeverAnswerAreLeftForThoseOfTheNextGroup) {
  PsFaults faults;
  faults.first_servers_are_dead = true;
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 100}, {wire::PhaseKind::kEval, 100}}, faults);
  const auto lives = run({job, 100}, 2, [&] {
    await([&] { return job.seen().generation == Generation{1}; });
    job.end_group("s0 was lost");
  });
  expect_codes(lives, {0, 0});
  EXPECT_EQ(job.seen().generation, Generation{2});
  expect_each_record(100, {1});
}

TEST_F(PsMemberTest, AGroupThatEndsBeforeItsOrdersAreObeyedIsFollowedByAJoin) {
  PsFaults faults;
  faults.first_group_ends_at_once = true;
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 100}, {wire::PhaseKind::kEval, 100}}, faults);
  expect_codes(run({job, 100}, 2), {0, 0});
  EXPECT_EQ(job.seen().generation, Generation{2});
  expect_each_record(100, {1});
}

TEST_F(PsMemberTest, ARosterOrAPhaseThatIsLostIsAskedForAgain) {
  PsFaults faults;
  faults.roster_lost_for = {kW0};
  faults.phase_lost_for = {kW1};
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 100}, {wire::PhaseKind::kEval, 100}}, faults);
  expect_codes(run({job, 100}, 2), {0, 0});
  EXPECT_EQ(job.seen().generation, Generation{1});
  expect_each_record(100, {1});
}

TEST_P(EveryPsMemberTest, AWorkerThatIsToLeaveGoesBetweenTwoBatchesAndTheOthersDoTheRest) {
  for (const bool by_signal : {false, true}) {
    evaluated.counts.clear();
    FakePsJob job(2, {{wire::PhaseKind::kTrain, 300}, {wire::PhaseKind::kEval, 300}}, none());
    std::atomic<bool> asked = false;
    const auto hook = [&](std::uint64_t computed, const client::Client&) {
      if (computed != 2) return;
      by_signal ? stop[1].store(true) : job.ask_to_leave(kW1);
      asked = true;
    };
    // If a step waited for no worker, it could have trained everything by then.
    const auto wait = [&](std::uint64_t computed, const client::Client&) {
      if (computed == 1 && GetParam() != SyncStrategy::kPsBsp) await([&] { return asked.load(); });
    };
    const auto lives = run({job, 300, {wait, hook}}, 2);
    expect_codes(lives, {0, 75});
    expect_each_record(300, {1});
    EXPECT_EQ(job.seen().generation, Generation{1});
    const std::uint64_t samples = job.seen().byes.at(kW1).samples_total;
    EXPECT_GE(samples, 30U) << "what it had begun it has finished";
    EXPECT_LT(lives[1].batches.size(), 25U);
  }
}

// Its push is revoked at the home, and may not count once its records belong to others.
TEST_F(PsMemberTest, AWorkerThatIsToLeaveWhileItsPushWaitsForOthersIsReleased) {
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 200}, {wire::PhaseKind::kEval, 200}});
  const auto hook = [&](std::uint64_t computed, const client::Client&) {
    if (computed != 2) return;
    job.ask_to_leave(kW0);
    await([&] { return job.seen().byes.contains(kW0); });
  };
  expect_codes(run({job, 200, {{}, hook}}, 2), {75, 0});
  expect_each_record(200, {1});
}

TEST_F(PsMemberTest, AWorkerWhoseServersNeverAnswerCanLeave) {
  PsFaults faults;
  faults.first_servers_are_dead = true;
  FakePsJob job(1, {{wire::PhaseKind::kTrain, 100}}, faults);
  const auto lives = run({job, 100}, 1, [&] {
    await([&] { return job.seen().generation == Generation{1}; });
    stop[0] = true;
  });
  expect_codes(lives, {75});
}

TEST_F(PsMemberTest, ANewPlanIsTakenUpWithTheNextBatch) {
  FakePsJob job(1, {{wire::PhaseKind::kTrain, 600}, {wire::PhaseKind::kEval, 600}});
  const auto hook = [&](std::uint64_t computed, const client::Client& client) {
    if (computed != 2) return;
    job.send_plan({PlanVersion{2}, {{kW0, 4, 5}}});
    await([&] { return client.held_plan() == PlanVersion{2}; });
  };
  const auto lives = run({job, 600, {hook}}, 1);
  expect_codes(lives, {0});
  std::vector<std::size_t> sizes;
  for (const auto& batch : lives[0].batches) sizes.push_back(batch.size());
  EXPECT_EQ(sizes[0], 10U);
  EXPECT_THAT(sizes, Contains(20U));
  EXPECT_EQ(job.seen().progress.at(kW0).plan, PlanVersion{2});
  EXPECT_GE(job.seen().reports.at(kW0).skipped, 2U) << "the first of each plan";
  EXPECT_EQ(job.seen().reports.at(kW0).samples_total, 600U);
  expect_each_record(600, {1});
}

TEST_F(PsMemberTest, TimesAddUpToTheWallTimeAndDelaysAreComputeTime) {
  drill::Rule rule;
  rule.workers = {"*"};
  rule.delay = std::chrono::milliseconds(5);
  FakePsJob job(2, {{wire::PhaseKind::kTrain, 400}, {wire::PhaseKind::kEval, 400}});
  const auto lives = run({job, 400, {}, {rule}}, 2);
  for (const Life& life : lives) {
    EXPECT_NEAR(sum_of(life.account), to_seconds(life.wall), 0.1);
    EXPECT_GT(life.account.startup, 0);
  }
  const auto batches = static_cast<double>(lives[0].batches.size());
  EXPECT_GE(lives[0].account.compute, batches * 0.005);
  EXPECT_GT(lives[1].account.collective_wait, 0);
}

TEST(LeaveWatch, ReleasesAfterTheGraceAndNotWithoutACause) {
  std::atomic<bool> leaves = false;
  std::promise<void> released;
  {
    const LeaveWatch watch([&] { return leaves.load(); }, std::chrono::hours(1),
                           [] { ADD_FAILURE() << "the grace is not over"; });
    leaves = true;
  }
  const LeaveWatch watch([&] { return leaves.load(); }, Duration{}, [&] { released.set_value(); });
  EXPECT_EQ(released.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace antdt::trainer
