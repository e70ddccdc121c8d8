// The accounts of time and of traffic, and what is read of a job's configuration.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/loop/accounts/time_account.h"
#include "trainer/loop/accounts/traffic_account.h"
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

TEST(TrafficAccount, AddsUpByHostsOverGenerations) {
  TrafficAccount account;
  account.begin(nullptr, 0, {{"a", ""}});
  EXPECT_TRUE(account.sums().hosts.empty());

  const auto first = std::make_shared<LinkLedger>(3U);
  account.begin(first, 1, {{"a", ""}, {"a", ""}, {"b", ""}});
  first->sent(0, 100);
  first->sent(2, 30);
  first->received(2, 31);
  first->waited(2, milliseconds(3));
  {
    const CountedAs slots(first, Traffic::kSlots);
    first->sent(0, 7);
  }
  account.end();
  first->sent(0, 1);  // nobody reads it any more
  const auto second = std::make_shared<LinkLedger>(2U);
  account.begin(second, 1, {{"b", ""}, {"a", ""}});
  second->sent(0, 1000);

  const wire::TrafficSums sums = account.sums();
  EXPECT_EQ(sums.gradients, 1130U);
  EXPECT_EQ(sums.slots, 7U);
  ASSERT_EQ(sums.hosts.size(), 2U);
  EXPECT_EQ(sums.hosts[0].to, "a");
  EXPECT_EQ(sums.hosts[0].sent_bytes, 107U);
  EXPECT_EQ(sums.hosts[1].from, "a");
  EXPECT_EQ(sums.hosts[1].to, "b");
  EXPECT_EQ(sums.hosts[1].sent_bytes, 1030U);
  EXPECT_EQ(sums.hosts[1].received_bytes, 31U);
  EXPECT_EQ(sums.hosts[1].waited_us, 3000U);
}

TEST(TrafficAccount, FurtherHostsOfADomainShareALine) {
  constexpr std::uint32_t kPeers = 1000;
  std::vector<TrafficAccount::Place> places;
  for (std::uint32_t rank = 0; rank < kPeers; ++rank) {
    places.push_back({"host" + std::to_string(rank), rank < 500 ? "x" : "y"});
  }
  const auto ledger = std::make_shared<LinkLedger>(kPeers);
  TrafficAccount account;
  account.begin(ledger, 0, places);
  for (std::uint32_t rank = kPeers - 1; rank > 0; --rank) ledger->sent(rank, 1);
  const auto expect = [&](std::uint64_t each) {
    const wire::TrafficSums sums = account.sums();
    ASSERT_EQ(sums.hosts.size(), TrafficAccount::kMostHosts - 1 + 2) << "none with itself";
    std::uint64_t all = 0, of_x = 0;
    for (const wire::HostTraffic& line : sums.hosts) {
      all += line.sent_bytes;
      if (line.to.empty() && line.to_domain == "x") of_x = line.sent_bytes;
    }
    EXPECT_EQ(all, (kPeers - 1) * each);
    EXPECT_EQ(of_x, (500 - TrafficAccount::kMostHosts) * each);
  };
  expect(1);
  const auto next = std::make_shared<LinkLedger>(kPeers);
  account.begin(next, 0, places);
  for (std::uint32_t rank = 1; rank < kPeers; ++rank) next->sent(rank, 1);
  expect(2);
}

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

TEST(TrainerConfig, WithoutAShareAnExchangeTakesThatOfOneOfTheWorkers) {
  const auto share = [](std::uint32_t workers, double alpha,
                        const std::string& sync = "shadow-easgd") {
    const auto config =
        parse_trainer_config(fmt::format(R"({{"roles": {{"worker": {{"count": {}}}}},
                         "trainer": {{"sync": "{}", "threads": 1,
                                      "shadow": {{"alpha": {}}}}}}})",
                                         workers, sync, alpha));
    return config ? config->shadow_alpha : -1;
  };
  EXPECT_DOUBLE_EQ(share(8, 0), 0.125);
  EXPECT_DOUBLE_EQ(share(1, 0), 0.5) << "with all of it replica and centre would change places";
  EXPECT_DOUBLE_EQ(share(8, 0.25), 0.25);
  for (const char* const sync : {"shadow-ma", "shadow-bmuf"}) {
    EXPECT_DOUBLE_EQ(share(8, 0, sync), 0.5) << "a mean does not swing";
    EXPECT_DOUBLE_EQ(share(8, 0.25, sync), 0.25);
  }
  const auto grows = parse_trainer_config(
      R"({"roles": {"worker": {"count": 2, "min": 2, "max": 8}},
          "trainer": {"sync": "shadow-easgd", "threads": 1}})");
  ASSERT_TRUE(grows) << grows.error().message;
  EXPECT_DOUBLE_EQ(grows->shadow_alpha, 0.125) << "2 workers that may become 8";
}

TEST(TrainerConfig, UnderShadowAPushOfAdamMovesRowsByOneOfTheWorkersShares) {
  const auto rate = [](const std::string& sync, const std::string& optimizer) {
    const auto config = parse_trainer_config(
        fmt::format(R"({{"roles": {{"worker": {{"count": 2, "min": 2, "max": 8}}}},
                         "trainer": {{"sync": "{}", "threads": 1, "optimizer": "{}"}}}})",
                    sync, optimizer));
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->table_rate : -1;
  };
  EXPECT_DOUBLE_EQ(rate("shadow-easgd", "adam"), 0.125) << "as the job may grow to 8 workers";
  EXPECT_DOUBLE_EQ(rate("shadow-ma", "adam"), 0.125);
  EXPECT_DOUBLE_EQ(rate("shadow-bmuf", "adam"), 0.125);
  EXPECT_DOUBLE_EQ(rate("shadow-easgd", "adagrad"), 1);
  EXPECT_DOUBLE_EQ(rate("shadow-easgd", "sgd"), 1);
  EXPECT_DOUBLE_EQ(rate("ps-asp", "adam"), 1);
}

TEST(TrainerConfig, InvalidJsonAndWrongTypesAreErrors) {
  EXPECT_FALSE(parse_trainer_config("{"));
  const auto wrong = parse_trainer_config(R"({"trainer": {"lr": "fast"}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace antdt::trainer
