// LibTorch models in domains that send one another significant updates, over real connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/trainer/broken_collective.h"
#include "tests/trainer/collective/testing.h"
#include "tests/trainer/domain_testing.h"
#include "tests/trainer/torch/engine_testing.h"

namespace antdt::trainer {
namespace {

TrainerConfig with_momentum(const std::string& model) {
  TrainerConfig config = config_of(model);
  config.momentum = 0.9;
  return config;
}

const DomainsOfTest kTwoAndTwo{{"a", {0, 1}}, {"b", {2, 3}}};

class EveryModelsDomains : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModelsDomains,
                         testing::Values("lr", "deepfm", "dlrm", "mlp", "resnet"),
                         [](const auto& p) { return p.param; });

// With a whole exchange in each step, the sum of the domains' updates, momentum included, is that
// of all-reduce, whatever the members' shares are.
TEST_P(EveryModelsDomains, LearnWhatAllReduceLearnsIfEveryExchangeIsWhole) {
  const data::DataShape shape = shape_for(GetParam());
  constexpr std::size_t kRecords = 24;
  const std::vector<std::size_t> begins{0, 2, 9, 14, kRecords};
  std::vector<float> start, summed, merged;
  run_as_threads(
      4,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        const LinksOfTest own(collective, kTwoAndTwo);
        const auto sums = engine_of(with_momentum(GetParam()), shape);
        const auto domains = engine_of(with_momentum(GetParam()), shape);
        const auto first = trained_floats(*domains);
        for (unsigned i = 0; i < 4; ++i) {
          const auto part =
              rows(records_for(GetParam(), kRecords, i), shape, begins[rank], begins[rank + 1]);
          step(*sums, collective, {part}, kRecords);
          const Status done =
              domains->exchange_updates(own.links(), {.step = Step{i}, .whole = true});
          ASSERT_TRUE(done) << done.error().message;
          step(*domains, own.within(), {part}, kRecords);
        }
        ASSERT_TRUE(domains->consolidate_domains(own.links()));
        if (rank != 3) return;
        start = first;
        summed = trained_floats(*sums);
        merged = trained_floats(*domains);
      },
      with_groups(kLayouts[0]));
  const double trained = distance(start, summed);
  ASSERT_GT(trained, 0);
  EXPECT_LT(distance(summed, merged), 5e-3 * trained);
}

class TorchDomains : public testing::TestWithParam<Layout> {
 protected:
  std::mutex mutex_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, TorchDomains,
                         testing::Values(kLayouts[0], kLayouts[1], kLayouts[2]),
                         [](const auto& layout) { return layout.param.name; });

TEST_P(TorchDomains, HaveTheSameBitsInADomainAndEverywhereWhenTheyAreConsolidated) {
  std::vector<std::vector<float>> replicas(4);
  std::vector<std::vector<Bits>> ended(4);
  run_as_threads(
      4,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        const LinksOfTest own(collective, kTwoAndTwo);
        const auto engine = engine_of(with_momentum("mlp"), image_shape());
        for (unsigned i = 0; i < 7; ++i) {
          const Status done = engine->exchange_updates(
              own.links(), {.step = Step{i}, .whole = i == 4, .threshold = 0.02F});
          ASSERT_TRUE(done) << done.error().message;
          step(*engine, own.within(), {images(6, 10 * rank + i)}, 24);
        }
        auto before = trained_floats(*engine);
        EXPECT_LT(engine->update_sums().sent, engine->update_sums().elements);
        ASSERT_TRUE(engine->consolidate_domains(own.links()));
        const std::lock_guard lock(mutex_);
        replicas[rank] = std::move(before);
        ended[rank] = bits_of(*engine);
      },
      with_groups(GetParam()));
  EXPECT_EQ(replicas[0], replicas[1]);
  EXPECT_EQ(replicas[2], replicas[3]);
  EXPECT_NE(replicas[0], replicas[2]) << "what is not significant was not sent";
  for (std::uint32_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ended[rank], ended[0]) << rank;
}

// Which of these records the values of a model get right, and their loss, as another engine finds.
wire::EvalPartial evaluated(const std::vector<float>& values, const data::Examples& records) {
  const auto engine = engine_of(with_momentum("mlp"), image_shape());
  const std::span<std::byte> floats = engine->state_parts()[0];
  std::ranges::copy(std::as_bytes(std::span(values)), floats.begin());
  return engine->evaluate(records).value();
}

// What a step finds that is dropped.
worker::VisitSums visit_of_step(Engine& engine, Collective& within, const data::Examples& records) {
  engine.begin_step(within);
  const auto sums = engine.compute(records, true);
  EXPECT_TRUE(sums) << sums.error().message;
  EXPECT_TRUE(engine.finish_reduction());
  engine.discard();
  return sums ? sums->visit : worker::VisitSums{};
}

// Each domain evaluates the replica of the one before, and its own, as they were before the
// exchange.
TEST_P(TorchDomains, AreVisitedByTheReplicaOfTheDomainBefore) {
  const DomainsOfTest three{{"a", {0, 1}}, {"b", {2}}, {"c", {3}}};
  const std::vector<std::size_t> domain_of{0, 0, 1, 2}, before{3, 3, 0, 2};
  std::vector<std::vector<float>> replicas(4);
  std::vector<worker::VisitSums> visits(4);
  run_as_threads(
      4,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        const LinksOfTest own(collective, three);
        const auto engine = engine_of(with_momentum("mlp"), image_shape());
        for (unsigned i = 0; i < 3; ++i) {
          ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{i}, .threshold = 0.1F}));
          step(*engine, own.within(), {images(6, 10 * rank + i)}, 24);
        }
        replicas[rank] = trained_floats(*engine);
        const std::uint64_t bytes = engine->update_sums().bytes;
        const UpdateExchange about{.step = Step{3}, .threshold = 0.1F, .visits = true};
        ASSERT_TRUE(engine->exchange_updates(own.links(), about));
        EXPECT_GT(engine->update_sums().bytes, bytes + sizeof(float) * replicas[rank].size());
        const auto values = trained_floats(*engine);
        visits[rank] = visit_of_step(*engine, own.within(), images(6, 100 + rank));
        EXPECT_EQ(trained_floats(*engine), replicas[rank]) << "it was dropped, with its exchange";
        EXPECT_NE(values, replicas[rank]);
        EXPECT_EQ(visit_of_step(*engine, own.within(), images(6, 100 + rank)), worker::VisitSums{})
            << "and with its visit";
      },
      with_groups(GetParam()));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const auto records = images(6, 100 + rank);
    const wire::EvalPartial own = evaluated(replicas[rank], records);
    const wire::EvalPartial guest = evaluated(replicas[before[rank]], records);
    const worker::VisitSums want{6, own.correct, guest.correct, own.loss_sum, guest.loss_sum};
    EXPECT_EQ(visits[rank], want) << rank;
    EXPECT_NE(own.loss_sum, guest.loss_sum);
  }
}

// After a whole exchange only the domain that is lost has records.
TEST_P(TorchDomains, WithdrawWhatALostDomainSentInPart) {
  const DomainsOfTest all{{"a", {0, 1}}, {"b", {2}}, {"c", {3}}};
  const DomainsOfTest rest{{"a", {0, 1}}, {"b", {2}}};
  run_as_threads(
      4,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        const LinksOfTest own(collective, all);
        const auto engine = engine_of(config_of("mlp"), image_shape());
        std::vector<float> whole;
        for (unsigned i = 0; i < 6; ++i) {
          const Status done = engine->exchange_updates(
              own.links(), {.step = Step{i}, .whole = i == 2, .threshold = 0.02F});
          ASSERT_TRUE(done) << done.error().message;
          if (i == 2) whole = trained_floats(*engine);
          if (i < 2 || rank == 3) {
            step(*engine, own.within(), {images(6, 10 * rank + i)}, 24);
          } else {
            step(*engine, own.within(), {}, 6);
          }
        }
        if (rank == 3) return;
        EXPECT_GT(max_difference(trained_floats(*engine), whole), 1e-3) << "it is here in part";
        const LinksOfTest left(collective, rest);
        ASSERT_TRUE(engine->consolidate_domains(left.links()));
        EXPECT_LT(max_difference(trained_floats(*engine), whole), 1e-6);
      },
      with_groups(GetParam()));
}

TEST(TorchDomain, HasEveryBitBackAfterADiscardedStepAndAfterWhatBroke) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        const LinksOfTest own(collective, domains);
        const auto engine = engine_of(with_momentum("deepfm"), click_shape());
        const auto another_step = [&](unsigned i) {
          ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{i}, .threshold = 0.01F}));
          step(*engine, own.within(), {clicks(8, 10 * rank + i)}, 16);
        };
        another_step(0);
        another_step(1);
        const auto before = bits_of(*engine);
        ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{2}, .whole = true}));
        engine->begin_step(own.within());
        ASSERT_TRUE(engine->compute(clicks(8, 7), true));
        ASSERT_TRUE(engine->finish_reduction());
        EXPECT_NE(bits_of(*engine), before);
        engine->discard();
        EXPECT_EQ(bits_of(*engine), before);
        engine->discard();  // there is nothing to bring back any more
        EXPECT_EQ(bits_of(*engine), before);

        BrokenCollective broken;
        DomainLinks to_nobody = own.links();
        to_nobody.across = &broken;
        EXPECT_FALSE(engine->exchange_updates(to_nobody, {.step = Step{2}, .whole = true}));
        engine->discard();
        EXPECT_EQ(bits_of(*engine), before);
        EXPECT_FALSE(engine->consolidate_domains(to_nobody));
        EXPECT_EQ(bits_of(*engine), before);

        another_step(2);
        const auto applied = bits_of(*engine);
        engine->discard();
        EXPECT_EQ(bits_of(*engine), applied) << "an applied step has forgotten what was before";
      },
      with_groups(kLayouts[0]));
}

TEST(TorchDomain, RefusesUpdatesOfAnotherModel) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        const LinksOfTest own(collective, domains);
        TrainerConfig config = config_of("mlp");
        if (collective.rank() == 1) config.hidden = {20, 8};
        const auto engine = engine_of(config, image_shape());
        const auto before = bits_of(*engine);
        const Status done = engine->exchange_updates(own.links(), {.step = Step{0}, .whole = true});
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().kind, ErrorKind::kCorrupt);
        engine->discard();
        EXPECT_EQ(bits_of(*engine), before);
      },
      with_groups(kLayouts[0]));
}

TEST(TorchDomain, WhoseStateWasReplacedHasNothingPending) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        const LinksOfTest own(collective, domains);
        const auto engine = engine_of(config_of("mlp"), image_shape());
        ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{0}}));
        step(*engine, own.within(), {images(8, collective.rank())}, 16);
        const auto received = engine_of(config_of("mlp"), image_shape());
        take_over(*engine, *received);
        const auto before = bits_of(*engine);
        ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{5}, .whole = true}));
        EXPECT_EQ(bits_of(*engine), before) << "nobody had anything to send";
      },
      with_groups(kLayouts[0]));
}

}  // namespace
}  // namespace antdt::trainer
