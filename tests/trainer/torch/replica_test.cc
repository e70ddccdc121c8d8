// Replicas of LibTorch models that differ, and what members average of them.
#include "trainer/torch/replicas/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <numeric>
#include <random>

#include "tests/trainer/collective/testing.h"
#include "tests/trainer/domain_testing.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/engine_testing.h"
#include "trainer/torch/optimizer.h"

namespace antdt::trainer {
namespace {

using Ranks = std::vector<std::uint32_t>;

void local_step(Engine& engine, Collective& members, const data::Examples& batch, double weight) {
  engine.begin_local_step(members);
  ASSERT_TRUE(engine.compute(batch, true));
  ASSERT_TRUE(engine.apply(weight));
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& all) {
  std::vector<double> sum(all[0].size());
  for (const auto& values : all) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]};
  }
  std::vector<float> mean;
  for (const double value : sum) mean.push_back(static_cast<float>(value / double(all.size())));
  return mean;
}

// Four members, each of whose replicas has trained other records.
class Replicas : public testing::TestWithParam<Layout> {
 protected:
  // Calls `body` for each member in a thread, after three local steps.
  template <class F>
  void in_members(F body) {
    run_as_threads(
        4,
        [&](Collective& collective) {
          const auto engine = engine_of(config_of("deepfm", "adam"), click_shape());
          for (unsigned i = 0; i < 3; ++i) {
            local_step(*engine, collective, clicks(8, 10 * collective.rank() + i), 8);
          }
          body(collective, *engine);
        },
        with_groups(GetParam()));
  }
  std::mutex mutex_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, Replicas, testing::Values(kLayouts[0], kLayouts[1], kLayouts[2]),
                         [](const auto& layout) { return layout.param.name; });

TEST_P(Replicas, MixedParametersAndMomentsAreTheMeanOfTheGroups) {
  std::vector<std::vector<Bits>> before(4), after(4);
  in_members([&](Collective& collective, Engine& engine) {
    const std::uint32_t rank = collective.rank();
    auto own = bits_of(engine);
    const auto group = collective.group(Ranks{rank % 2, rank % 2 + 2});
    ASSERT_TRUE(group) << group.error().message;
    const Status mixed = engine.mix(**group);
    ASSERT_TRUE(mixed) << mixed.error().message;
    const std::lock_guard lock(mutex_);
    before[rank] = std::move(own);
    after[rank] = bits_of(engine);
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::size_t other = (rank + 2) % 4;
    ASSERT_EQ(after[rank].size(), 4U) << "parameters, two moments, a counter of steps";
    EXPECT_EQ(after[rank], after[other]) << "the same bits in the group";
    for (std::size_t part = 0; part < 3; ++part) {
      EXPECT_NE(before[rank][part], before[other][part]) << "the replicas did differ";
      EXPECT_NE(after[rank][part], after[(rank + 1) % 4][part]) << "another group, another mean";
      const auto mean = mean_of({as_floats(before[rank][part]), as_floats(before[other][part])});
      EXPECT_LT(max_difference(as_floats(after[rank][part]), mean), 1e-6);
    }
    EXPECT_EQ(after[rank][3], before[rank][3]);
  }
}

TEST(MixedReplicas, KeepWhatAnotherOptimizerThanAdamRemembers) {
  TrainerConfig momentum = config_of("mlp");
  momentum.momentum = 0.9;
  for (const TrainerConfig& config : {momentum, config_of("mlp", "adagrad")}) {
    LocalGroup group(2);
    group.run([&](Collective& collective) {
      const auto engine = engine_of(config, image_shape());
      local_step(*engine, collective, images(8, collective.rank()), 8);
      const auto before = bits_of(*engine);
      ASSERT_TRUE(engine->mix(collective));
      const auto after = bits_of(*engine);
      EXPECT_NE(after[0], before[0]);
      EXPECT_EQ(after[1], before[1]);
    });
  }
}

// The state of each of three members by rank, whose embedding gradients are `how`.
std::vector<std::vector<Bits>> mixed_states(TrainerConfig config, const std::string& how) {
  data::DataShape shape = click_shape();
  shape.id_rows = 500;
  config.embedding_gradients = how;
  LocalGroup group(3);
  std::vector<std::vector<Bits>> ended(3);
  group.run([&](Collective& collective) {
    const auto engine = engine_of(config, shape);
    for (unsigned step = 0; step < 4; ++step) {
      ASSERT_TRUE(engine->mix(collective));
      engine->begin_local_step(collective);
      ASSERT_TRUE(engine->compute(clicks(2, 10 * collective.rank() + step), true));
      if (step == 1) {
        engine->discard();
      } else {
        ASSERT_TRUE(engine->apply(2));
      }
    }
    ended[collective.rank()] = bits_of(*engine);
  });
  return ended;
}

// Adam's moments come from other members, so a row may move that was in no batch of this one. With
// momentum, which stays with each member, only rows of its own batches move by its updates.
TEST(MixedReplicas, MoveTheSameRowsToTheLastBitWhicheverRest) {
  TrainerConfig momentum = config_of("deepfm");
  momentum.momentum = 0.9;
  for (const TrainerConfig& config : {momentum, config_of("deepfm", "adam")}) {
    EXPECT_EQ(mixed_states(config, "dense"), mixed_states(config, "auto")) << config.optimizer;
  }
}

// Eight members, each with an element for every kind of gradient, whose moments are averaged in
// each step, beside an optimizer that gets the mean of their gradients. Returns, for each kind, the
// mean of the members' second moments relative to that optimizer's.
std::array<double, 3> second_moments(std::uint32_t told) {
  constexpr std::uint32_t kMembers = 8, kOfAKind = 200, kFloats = 3 * kOfAKind;
  std::vector<std::unique_ptr<Optimizer>> all;
  for (std::uint32_t i = 0; i <= kMembers; ++i) {
    all.push_back(std::move(make_optimizer({"adam", 1e-3, 0, 0}, kFloats).value()));
    if (i < kMembers) dynamic_cast<ReplicaOptimizer&>(*all[i]).set_members(told);
  }
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(kFloats);
  for (std::uint32_t step = 0; step < 300; ++step) {
    std::vector<float> sum(kFloats);
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      std::vector<float> gradient(kFloats);
      for (std::uint32_t k = 0; k < kOfAKind; ++k) {
        gradient[k] = 1;                          // the same for all
        gradient[kOfAKind + k] = normal(random);  // noise
        const bool has_row = random() % (20 * kMembers) == 0;
        gradient[2 * kOfAKind + k] = has_row ? normal(random) : 0;  // of a rare row
      }
      for (std::uint32_t k = 0; k < kFloats; ++k) sum[k] += gradient[k] / kMembers;
      all[i]->step(values, gradient, 1);
    }
    all[kMembers]->step(values, sum, 1);
    for (std::size_t array = 0; array < 2; ++array) {
      std::vector<std::vector<float>> of_members;
      for (std::uint32_t i = 0; i < kMembers; ++i) {
        const auto own = all[i]->state()[array];
        of_members.emplace_back(own.begin(), own.end());
      }
      const auto mean = mean_of(of_members);
      for (std::uint32_t i = 0; i < kMembers; ++i) {
        std::ranges::copy(mean, all[i]->state()[array].begin());
      }
    }
  }
  std::array<double, 3> relative{};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const auto sum_of = [&](std::size_t optimizer) {
      const auto part = all[optimizer]->state()[1].subspan(kind * kOfAKind, kOfAKind);
      return std::accumulate(part.begin(), part.end(), 0.0);
    };
    relative[kind] = sum_of(0) / sum_of(kMembers);
  }
  return relative;
}

TEST(AdamOfMembers, HasTheSecondMomentsOfTheGradientOfAllRecords) {
  const auto [same, noise, rare] = second_moments(8);
  EXPECT_NEAR(same, 1, 0.02);
  EXPECT_NEAR(noise, 1, 0.15);
  EXPECT_NEAR(rare, 1, 0.25);
  const auto [same_alone, noise_alone, rare_alone] = second_moments(1);
  EXPECT_NEAR(same_alone, 1, 0.02);
  EXPECT_GT(noise_alone, 6) << "a member's own gradients have eight times the variance";
  EXPECT_GT(rare_alone, 6);
}

TEST_P(Replicas, ADiscardedStepBringsEveryBitBack) {
  in_members([&](Collective& collective, Engine& engine) {
    const auto before = bits_of(engine);
    ASSERT_TRUE(engine.mix(collective));
    EXPECT_NE(bits_of(engine), before);
    engine.begin_local_step(collective);
    ASSERT_TRUE(engine.compute(clicks(8, 5), true));
    engine.discard();
    EXPECT_EQ(bits_of(engine), before);
    engine.discard();  // there is nothing to bring back any more
    EXPECT_EQ(bits_of(engine), before);

    ASSERT_TRUE(engine.mix(collective));
    local_step(engine, collective, clicks(8, 5), 8);
    const auto applied = bits_of(engine);
    engine.discard();
    EXPECT_EQ(bits_of(engine), applied) << "an applied step has forgotten what was before";
  });
}

TEST_P(Replicas, AConsolidatedStateIsTheMeanOfAllOfItWithTheSameBitsOnEachHolder) {
  const Ranks holders{0, 1, 3};
  std::vector<std::vector<Bits>> before(4), after(4);
  in_members([&](Collective& collective, Engine& engine) {
    const std::uint32_t rank = collective.rank();
    auto own = bits_of(engine);
    if (rank != 2) {
      const auto group = collective.group(holders);
      ASSERT_TRUE(group) << group.error().message;
      const Status done = engine.consolidate(**group);
      ASSERT_TRUE(done) << done.error().message;
    }
    const std::lock_guard lock(mutex_);
    before[rank] = std::move(own);
    after[rank] = bits_of(engine);
  });
  EXPECT_EQ(after[2], before[2]);
  ASSERT_EQ(after[0].size(), 4U) << "parameters, two moments, a counter of steps";
  for (const std::uint32_t rank : holders) {
    EXPECT_EQ(after[rank], after[0]);
    EXPECT_NE(before[rank], after[0]);
  }
  for (std::size_t part = 0; part + 1 < after[0].size(); ++part) {
    std::vector<std::vector<float>> all;
    for (const std::uint32_t rank : holders) all.push_back(as_floats(before[rank][part]));
    EXPECT_LT(max_difference(as_floats(after[0][part]), mean_of(all)), 1e-6) << part;
  }
}

// What the members of a local group do, the last of which breaks off at its n-th sum.
std::vector<std::pair<bool, bool>> consolidate_broken_at(std::uint64_t number) {
  LocalGroup group(3);
  std::vector<std::pair<bool, bool>> ended(3);  // completed; changed
  in_threads(3, [&](std::uint32_t rank) {
    const auto member = group.member(rank, [&](OperationKind, std::uint64_t operation) {
      return rank == 2 && operation == number ? Fate::kBreaks : Fate::kGoesOn;
    });
    const auto engine = engine_of(config_of("deepfm", "adam"), click_shape());
    local_step(*engine, *member, clicks(8, rank), 8);
    const auto before = bits_of(*engine);
    const bool completed = engine->consolidate(*member).has_value();
    ended[rank] = {completed, bits_of(*engine) != before};
  });
  return ended;
}

TEST(BrokenConsolidation, LeavesEveryBitOfAMemberThatCannotCompleteIt) {
  for (const std::uint64_t at : {0U, 1U, 2U}) {
    const auto ended = consolidate_broken_at(at);
    EXPECT_FALSE(ended[2].first) << at;
    for (const auto& [completed, changed] : ended) EXPECT_EQ(completed, changed) << at;
  }
  for (const auto& [completed, changed] : consolidate_broken_at(3))
    EXPECT_TRUE(completed && changed);
}

TEST(BrokenMix, IsTakenBackByDiscard) {
  for (const std::uint64_t at : {0U, 1U, 2U}) {  // the sums of parameters and of both moments
    in_threads(2, [at, group = std::make_shared<LocalGroup>(2)](std::uint32_t rank) {
      const auto member = group->member(rank, [&](OperationKind, std::uint64_t number) {
        return rank == 1 && number == at ? Fate::kBreaks : Fate::kGoesOn;
      });
      const auto engine = engine_of(config_of("mlp", "adam"), image_shape());
      local_step(*engine, *member, images(8, rank), 8);
      const auto before = bits_of(*engine);
      EXPECT_EQ(engine->mix(*member).has_value(), rank == 0 && at == 2);
      engine->discard();
      EXPECT_EQ(bits_of(*engine), before);
    });
  }
}

TEST(ReplacedState, IsNotUndoneByWhatWasBeforeAMix) {
  in_threads(2, [group = std::make_shared<LocalGroup>(2)](std::uint32_t rank) {
    const auto member = group->member(rank);
    const auto engine = engine_of(config_of("resnet"), image_shape());
    const auto source = engine_of(config_of("resnet"), image_shape());
    local_step(*source, *member, images(8, 7), 8);
    local_step(*engine, *member, images(8, rank), 8);
    ASSERT_TRUE(engine->mix(*member));
    const auto received = bits_of(*source);
    take_over(*engine, *source);
    EXPECT_EQ(bits_of(*engine), received);
    engine->discard();
    EXPECT_EQ(bits_of(*engine), received);
  });
}

// At equal parameters the mean of the members' own updates, each weighted by N / W, is the update
// of all-reduce, whatever their shares; buffers of BatchNorm and sums of squares aside.
class EveryModelsReplicas : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModelsReplicas,
                         testing::Values("lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet"),
                         [](const auto& p) { return p.param; });

TEST_P(EveryModelsReplicas, TheMeanOfWeightedLocalStepsIsTheStepOfSummedGradients) {
  const data::DataShape shape = shape_for(GetParam());
  const data::Examples all = records_for(GetParam(), 24, 1);
  const std::vector<std::size_t> begins{0, 4, 14, 24};
  std::vector<float> summed, mixed, start;
  LocalGroup group(3);
  group.run([&](Collective& collective) {
    const std::uint32_t rank = collective.rank();
    const auto part = rows(all, shape, begins[rank], begins[rank + 1]);
    const auto sums = engine_of(config_of(GetParam()), shape);
    const auto own = engine_of(config_of(GetParam()), shape);
    const auto first = trained_floats(*own);
    step(*sums, collective, {part}, 24);
    local_step(*own, collective, part, 24.0 / 3);
    ASSERT_TRUE(own->mix(collective));
    if (rank != 0) return;
    start = first;
    summed = trained_floats(*sums);
    mixed = trained_floats(*own);
  });
  const double trained = distance(start, summed);
  ASSERT_GT(trained, 0);
  EXPECT_LT(distance(summed, mixed), 5e-3 * trained);
}

}  // namespace
}  // namespace antdt::trainer
