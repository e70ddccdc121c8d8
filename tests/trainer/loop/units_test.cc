// The time account, and what is read of a job's configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/loop/time_account.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeAccount, CategoriesAddUpToTheTimeSinceTheStart) {
  ManualClock clock;
  clock.advance(seconds(5));
  const MonoTime began = clock.now() - seconds(2);
  TimeAccount account(clock, began);
  clock.advance(seconds(1));
  account.enter(TimeUse::kData);
  clock.advance(milliseconds(300));
  {
    const Timed computing(account, TimeUse::kCompute);
    clock.advance(milliseconds(500));
    {
      const Timed waiting(account, TimeUse::kCollectiveWait);
      clock.advance(milliseconds(200));
    }
    clock.advance(milliseconds(10));
  }
  clock.advance(milliseconds(40));
  EXPECT_EQ(account.spent(TimeUse::kStartup), seconds(3));
  EXPECT_EQ(account.spent(TimeUse::kCompute), milliseconds(510));
  EXPECT_EQ(account.spent(TimeUse::kCollectiveWait), milliseconds(200));
  EXPECT_EQ(account.spent(TimeUse::kData), milliseconds(340));
  const wire::TimeAccount s = account.seconds();
  EXPECT_NEAR(s.compute + s.data + s.collective_wait + s.shard_wait + s.reconfigure + s.checkpoint +
                  s.startup + s.other,
              to_seconds(account.total()), 1e-9);
}

const MonoTime kLoaded = SteadyClock().now();

TEST(TimeAccount, TheProcessStartedBeforeNowAndNotLongBeforeItWasLoaded) {
  const SteadyClock clock;
  const MonoTime started = process_start(clock.now());
  EXPECT_LE(started, clock.now());
  // However long this program has been running.
  EXPECT_LT(kLoaded - started, std::chrono::minutes(10));
}

constexpr auto kConfig = R"({
  "job": {"seed": 9}, "cluster": {"hosts": ["10.0.0.1:7700"], "interface": "eth3"},
  "batch": {"global": 512},
  "trainer": {"model": "mlp", "optimizer": "sgd", "lr": 0.5, "momentum": 0.9,
              "weight_decay": 0.01, "embedding_dim": 4, "hidden": [10, 20],
              "cin_layers": [7, 6, 5], "bottom_hidden": [], "threads": 2},
  "inject": [{"workers": ["w1"], "slowdown": 2.0}]})";

TEST(TrainerConfig, ReadsItsPartOfTheJobsConfiguration) {
  const auto config = parse_trainer_config(kConfig);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->seed, 9U);
  EXPECT_EQ(config->model, "mlp");
  EXPECT_EQ(config->optimizer, "sgd");
  EXPECT_DOUBLE_EQ(config->learning_rate, 0.5);
  EXPECT_DOUBLE_EQ(config->momentum, 0.9);
  EXPECT_DOUBLE_EQ(config->weight_decay, 0.01);
  EXPECT_EQ(config->embedding_dim, 4U);
  EXPECT_THAT(config->hidden, ::testing::ElementsAre(10, 20));
  EXPECT_THAT(config->cin_layers, ::testing::ElementsAre(7, 6, 5));
  EXPECT_THAT(config->bottom_hidden, ::testing::IsEmpty());
  EXPECT_EQ(config->threads, 2U);
  EXPECT_EQ(config->global_batch, 512U);
  EXPECT_EQ(config->interface, "eth3");
  EXPECT_THAT(config->hosts, ::testing::ElementsAre("10.0.0.1:7700"));
}

TEST(TrainerConfig, InvalidJsonAndWrongTypesAreErrors) {
  EXPECT_FALSE(parse_trainer_config("{"));
  const auto wrong = parse_trainer_config(R"({"trainer": {"lr": "fast"}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace antdt::trainer
