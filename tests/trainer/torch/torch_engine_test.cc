// The engine: what several members compute together is what one computes alone.
#include "trainer/torch/torch_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <numeric>
#include <random>

#include "core/os/fs.h"
#include "tests/trainer/broken_collective.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/saved_state.h"
#include "tests/trainer/torch/engine_testing.h"
#include "trainer/loop/state/state_hash.h"
#include "trainer/torch/sparse_rows.h"

namespace antdt::trainer {
namespace {

// How the records of one global batch are spread: for each rank, the sizes of
// its micro-batches.
using Spread = std::vector<std::vector<std::size_t>>;

std::vector<float> train_spread(const TrainerConfig& config, const data::DataShape& shape,
                                const data::Examples& all, const Spread& spread, int steps) {
  const double weight = all.weights.empty()
                            ? static_cast<double>(all.count)
                            : std::accumulate(all.weights.begin(), all.weights.end(), 0.0);
  LocalGroup group(static_cast<std::uint32_t>(spread.size()));
  std::vector<float> result;
  group.run([&](Collective& collective) {
    const auto engine = engine_of(config, shape);
    std::size_t from = 0;
    for (std::uint32_t rank = 0; rank < collective.rank(); ++rank) {
      for (const std::size_t count : spread[rank]) from += count;
    }
    std::vector<data::Examples> batches;
    for (const std::size_t count : spread[collective.rank()]) {
      batches.push_back(rows(all, shape, from, from + count));
      from += count;
    }
    for (int i = 0; i < steps; ++i) step(*engine, collective, batches, weight);
    if (collective.rank() == 0) result = state_of(*engine);
  });
  return result;
}

// How much of what training changes the order of sums may: a wrong weight would change as much
// as training itself.
constexpr double kRounding = 5e-3;

class EveryModel : public ::testing::TestWithParam<std::string> {
 protected:
  data::DataShape shape_ = shape_for(GetParam());
  data::Examples make(std::size_t count, unsigned seed) {
    return records_for(GetParam(), count, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         ::testing::Values("lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet"),
                         [](const auto& p) { return p.param; });

TEST_P(EveryModel, AnySpreadOfTheGlobalBatchGivesTheSameWeights) {
  const TrainerConfig config = config_of(GetParam());
  const data::Examples all = make(48, 1);
  const auto alone = train_spread(config, shape_, all, {{48}}, 5);
  const double trained = distance(alone, train_spread(config, shape_, all, {{48}}, 1));
  for (const Spread& spread :
       {Spread{{24}, {24}}, Spread{{40}, {8}}, Spread{{5, 5, 5}, {20}, {13}}, Spread{{48}, {}}}) {
    const auto together = train_spread(config, shape_, all, spread, 5);
    EXPECT_LT(distance(alone, together), kRounding * trained) << "spread over " << spread.size();
  }
  EXPECT_GT(max_difference(alone, train_spread(config, shape_, all, {{48}}, 1)), 1e-3)
      << "training does change the weights by more than the tolerance";
}

// Without momenta a row that is in no batch stays unchanged in either way.
TEST_P(EveryModel, RowsAloneGiveWhatTheWholeTableGives) {
  for (const std::string optimizer : {"sgd", "adagrad"}) {
    TrainerConfig config = config_of(GetParam(), optimizer);
    const data::Examples all = make(48, 1);
    const auto whole = train_spread(config, shape_, all, {{48}}, 5);
    const double trained = distance(whole, train_spread(config, shape_, all, {{48}}, 1));
    config.embedding_gradients = "sparse";
    for (const Spread& spread :
         {Spread{{48}}, Spread{{24}, {24}}, Spread{{5, 5, 5}, {20}, {13}}, Spread{{}, {48}}}) {
      const auto rows_alone = train_spread(config, shape_, all, spread, 5);
      EXPECT_LT(distance(whole, rows_alone), kRounding * trained)
          << optimizer << " over " << spread.size();
    }
  }
}

// However the table is summed, with momenta, too.
TEST_P(EveryModel, WhatIsQuickerGivesWhatTheWholeTableGives) {
  for (const std::string optimizer : {"sgd", "adagrad", "adam"}) {
    TrainerConfig config = config_of(GetParam(), optimizer);
    const data::Examples all = make(48, 1);
    const auto whole = train_spread(config, shape_, all, {{48}}, 5);
    const double trained = distance(whole, train_spread(config, shape_, all, {{48}}, 1));
    config.embedding_gradients = "auto";
    for (const Spread& spread : {Spread{{48}}, Spread{{24}, {24}}, Spread{{2}, {}, {46}}}) {
      const auto quicker = train_spread(config, shape_, all, spread, 5);
      EXPECT_LT(distance(whole, quicker), kRounding * trained)
          << optimizer << " over " << spread.size();
    }
  }
}

// How members sum a table of so many rows in three steps, as one of them counts.
wire::TableSums counted(const std::string& how, std::uint32_t members, std::uint64_t table_rows) {
  TrainerConfig config = config_of("deepfm");
  config.embedding_gradients = how;
  data::DataShape shape = click_shape();
  shape.id_rows = table_rows;
  LocalGroup group(members);
  std::mutex mutex;
  wire::TableSums sums;
  group.run([&](Collective& collective) {
    const auto engine = engine_of(config, shape);
    for (unsigned i = 0; i < 3; ++i) step(*engine, collective, {clicks(8, i)}, 8.0 * members);
    const std::lock_guard lock(mutex);
    sums = engine->table_sums();
  });
  return sums;
}

TEST(TableSums, EachStepCountsAsRowsOrAsTheWholeTable) {
  EXPECT_EQ(counted("auto", 2, 5000).as_rows, 3U);
  EXPECT_EQ(counted("auto", 2, 5000).as_whole, 0U);
  EXPECT_EQ(counted("auto", 2, 50).as_rows, 0U);
  EXPECT_EQ(counted("auto", 2, 50).as_whole, 3U);
  EXPECT_EQ(counted("sparse", 2, 50).as_rows, 3U);
}

TEST(TableSums, StepsWithoutAChoiceCountAsNeither) {
  for (const wire::TableSums& sums : {counted("auto", 1, 5000), counted("dense", 2, 5000)}) {
    EXPECT_EQ(sums.as_rows, 0U);
    EXPECT_EQ(sums.as_whole, 0U);
  }
}

TEST(RowsAreQuicker, WhereTheyAreFewOfTheTable) {
  const auto quicker = [](std::vector<std::uint64_t> counts, std::size_t rows) {
    return rows_are_quicker(counts, rows, 9);
  };
  EXPECT_TRUE(quicker({6000, 6000}, 65536));
  EXPECT_FALSE(quicker({30000, 30000}, 65536));
  EXPECT_TRUE(quicker({30000, 30000}, 1000000));
  EXPECT_TRUE(quicker({6000, 0, 0, 0}, 65536));
  EXPECT_FALSE(quicker({9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000}, 65536))
      << "each member receives the rows of all others";
  EXPECT_FALSE(quicker({10, kWholeTable}, 65536));
}

// Each row lies where its sum says, with runs over words' ends.
TEST(SparseRows, AdjacentRowsAreOneRun) {
  std::vector<float> gradient(200 * 2);
  SparseRows rows(gradient, 2, TableSum::kRows);
  const auto runs = [&] {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    rows.for_each_run(
        [&](std::uint64_t first, std::uint64_t count) { all.emplace_back(first, count); });
    return all;
  };
  EXPECT_TRUE(runs().empty());
  const std::vector<std::int64_t> ids = {64, 3, 62, 63, 3, 199, 5};
  rows.touch(ids);
  using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(runs(), (Runs{{3, 1}, {5, 1}, {62, 3}, {199, 1}}));
  rows.forget();
  EXPECT_TRUE(runs().empty());
}

TEST(SparseGradients, ARowThatIsInNoBatchStaysAsItIsAndMembersStayAlike) {
  TrainerConfig config = config_of("deepfm", "adam");
  config.embedding_gradients = "sparse";
  const data::DataShape shape = click_shape();
  std::mutex mutex;
  std::vector<std::uint64_t> hashes;
  LocalGroup group(3);
  group.run([&](Collective& collective) {
    const auto engine = engine_of(config, shape);
    // Rows 0 to 9 are in the first batches and not in those that follow.
    for (unsigned i = 0; i < 6; ++i) {
      data::Examples batch = clicks(8, 10 * i + collective.rank());
      for (std::int64_t& id : batch.ids) id = i < 3 ? id % 10 : 10 + id % 40;
      const auto before = state_of(*engine);
      step(*engine, collective, {batch}, 24);
      const auto after = state_of(*engine);
      // The table lies last; rows of 5 floats, 50 of them, up to a cache line.
      const auto table = [](const std::vector<float>& state) {
        const std::size_t arrays = 3;  // values, two moments
        const std::size_t end = state.size() / arrays;
        return std::vector<float>(state.begin() + static_cast<std::ptrdiff_t>(end - 256),
                                  state.begin() + static_cast<std::ptrdiff_t>(end - 256 + 50));
      };
      EXPECT_EQ(table(before) == table(after), i >= 3) << "step " << i;
    }
    const std::lock_guard lock(mutex);
    hashes.push_back(state_hash(*engine, Step{6}));
  });
  EXPECT_EQ(hashes, std::vector<std::uint64_t>(3, hashes.at(0)));
}

TEST_P(EveryModel, WeightsOfRecordsCountLikeRepetition) {
  const TrainerConfig config = config_of(GetParam());
  data::Examples weighted = make(8, 2);
  weighted.weights = {1, 1, 1, 1, 1, 1, 1, 2};
  data::Examples repeated = make(8, 2);
  const data::Examples last = rows(repeated, shape_, 7, 8);
  ++repeated.count;
  repeated.dense.insert(repeated.dense.end(), last.dense.begin(), last.dense.end());
  repeated.ids.insert(repeated.ids.end(), last.ids.begin(), last.ids.end());
  repeated.labels.push_back(last.labels[0]);
  EXPECT_LT(max_difference(train_spread(config, shape_, weighted, {{3}, {5}}, 3),
                           train_spread(config, shape_, repeated, {{9}}, 3)),
            1e-5);
}

TEST_P(EveryModel, EqualSeedsGiveEqualStateAndOthersDoNot) {
  TrainerConfig config = config_of(GetParam());
  const auto a = engine_of(config, shape_);
  const auto b = engine_of(config, shape_);
  EXPECT_EQ(state_hash(*a, Step{0}), state_hash(*b, Step{0}));
  EXPECT_NE(state_hash(*a, Step{0}), state_hash(*a, Step{1})) << "the step is part of the state";
  if (GetParam() == "lr") return;  // it starts at zero whatever the seed
  config.seed = 6;
  EXPECT_NE(state_hash(*a, Step{0}), state_hash(*engine_of(config, shape_), Step{0}));
}

TEST_P(EveryModel, LearnsATinyProblem) {
  const auto engine = engine_of(config_of(GetParam(), "adam"), shape_);
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    for (unsigned i = 0; i < (GetParam() == "resnet" ? 60U : 400U); ++i) {
      step(*engine, collective, {make(64, i)}, 64);
    }
  });
  const auto partial = engine->evaluate(make(500, 1000));
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->records, 500U);
  EXPECT_GT(partial->correct, GetParam() == "lr" ? 380U : 440U);
  EXPECT_LT(partial->loss_sum / 500, GetParam() == "lr" ? 0.58 : 0.4);  // log 2 is 0.69
}

TEST_P(EveryModel, GoesOnFromASavedStateAsIfNothingHadHappened) {
  const TrainerConfig config = config_of(GetParam(), "adam");
  const auto original = engine_of(config, shape_);
  const auto restored = engine_of(config, shape_);
  const TempDir directory;
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    step(*original, collective, {make(16, 1)}, 16);
    const auto files = save_state(*original, directory.path(), Step{1});
    ASSERT_TRUE(files) << files.error().message;
    ASSERT_EQ(files->size(), 2U);
    const auto loaded = load_state(*restored, directory.path());
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(*loaded, Step{1});
    step(*original, collective, {make(16, 2)}, 16);
    step(*restored, collective, {make(16, 2)}, 16);
  });
  EXPECT_EQ(state_hash(*original, Step{2}), state_hash(*restored, Step{2}));
}

class EveryModelAndOptimizer
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  [[nodiscard]] static TrainerConfig config() {
    const auto& [model, optimizer] = GetParam();
    TrainerConfig config = config_of(model, optimizer == "momentum" ? "sgd" : optimizer);
    if (optimizer == "momentum") config.momentum = 0.9;
    return config;
  }
  data::DataShape shape_ = shape_for(std::get<0>(GetParam()));
  [[nodiscard]] data::Examples make(std::size_t count, unsigned seed) const {
    return records_for(std::get<0>(GetParam()), count, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, EveryModelAndOptimizer,
    ::testing::Combine(::testing::Values("lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet"),
                       ::testing::Values("sgd", "momentum", "adagrad", "adam")),
    [](const auto& p) { return std::get<0>(p.param) + "_" + std::get<1>(p.param); });

TEST_P(EveryModelAndOptimizer, GoesOnFromAnotherMembersMemoryAsIfNothingHadHappened) {
  const auto survivor = engine_of(config(), shape_);
  // One that never made a step, and of other first parameters: all must come over.
  TrainerConfig other = config();
  other.seed = 77;
  const auto newcomer = engine_of(other, shape_);
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    for (unsigned i = 0; i < 3; ++i) step(*survivor, collective, {make(16, i)}, 16);
    take_over(*newcomer, *survivor);
    EXPECT_EQ(state_hash(*newcomer, Step{3}), state_hash(*survivor, Step{3}));
    for (unsigned i = 3; i < 6; ++i) {
      const double a = step(*survivor, collective, {make(16, i)}, 16);
      const double b = step(*newcomer, collective, {make(16, i)}, 16);
      EXPECT_EQ(a, b) << "the model computes with what it took over";
    }
  });
  EXPECT_EQ(state_hash(*newcomer, Step{6}), state_hash(*survivor, Step{6}));
  EXPECT_EQ(state_of(*newcomer), state_of(*survivor));
}

TEST_P(EveryModelAndOptimizer, EachPartOfTheStateCounts) {
  const auto survivor = engine_of(config(), shape_);
  LocalGroup group(1);
  group.run([&](Collective& collective) { step(*survivor, collective, {make(16, 1)}, 16); });
  const auto source = survivor->state_parts();
  for (std::size_t left_out = 0; left_out < source.size(); ++left_out) {
    const auto newcomer = engine_of(config(), shape_);
    const auto target = newcomer->state_parts();
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (i != left_out) std::copy(source[i].begin(), source[i].end(), target[i].begin());
    }
    newcomer->state_replaced();
    EXPECT_NE(state_hash(*newcomer, Step{1}), state_hash(*survivor, Step{1}))
        << "part " << left_out;
  }
}

TEST(TorchEngine, LeftoversOfABrokenStepAreGoneOnceTheStateIsReplaced) {
  const auto shape = click_shape();
  const auto survivor = engine_of(config_of("deepfm", "adam"), shape);
  const auto broken = engine_of(config_of("deepfm", "adam"), shape);
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    BrokenCollective lost;
    broken->begin_step(lost);
    ASSERT_TRUE(broken->compute(clicks(8, 1), true));
    ASSERT_FALSE(broken->finish_reduction());
    step(*survivor, collective, {clicks(8, 2)}, 8);
    take_over(*broken, *survivor);
    step(*survivor, collective, {clicks(8, 3)}, 8);
    step(*broken, collective, {clicks(8, 3)}, 8);
  });
  EXPECT_EQ(state_hash(*broken, Step{2}), state_hash(*survivor, Step{2}));
}

TEST(TorchEngine, AStepThatIsDiscardedLeavesNoTrace) {
  const auto shape = click_shape();
  const auto engine = engine_of(config_of("deepfm", "adam"), shape);
  const auto before = state_hash(*engine, Step{1});
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    engine->begin_step(collective);
    ASSERT_TRUE(engine->compute(clicks(8, 1), true));
    ASSERT_TRUE(engine->finish_reduction());
    engine->discard();
    EXPECT_EQ(state_hash(*engine, Step{1}), before);
    const auto other = engine_of(config_of("deepfm", "adam"), shape);
    step(*engine, collective, {clicks(8, 2)}, 8);
    step(*other, collective, {clicks(8, 2)}, 8);
    EXPECT_EQ(state_hash(*engine, Step{1}), state_hash(*other, Step{1}));
  });
}

TEST(TorchEngine, AStateOfAnotherModelIsRefused) {
  const TempDir directory;
  ASSERT_TRUE(
      save_state(*engine_of(config_of("deepfm"), click_shape()), directory.path(), Step{3}));
  const auto other = engine_of(config_of("lr"), click_shape());
  const auto before = state_hash(*other, Step{0});
  const auto loaded = load_state(*other, directory.path());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(state_hash(*other, Step{0}), before);
}

TEST(TorchEngine, AStateThatIsCutShortIsRefused) {
  const TempDir directory;
  const auto engine = engine_of(config_of("deepfm"), click_shape());
  ASSERT_TRUE(save_state(*engine, directory.path(), Step{3}));
  const auto bytes = read_file(directory / "state.bin");
  ASSERT_TRUE(write_file_atomic(directory / "state.bin", bytes->substr(0, bytes->size() - 1)));
  EXPECT_FALSE(load_state(*engine, directory.path()));
}

TEST(TorchEngine, EvaluationCountsEveryRecordInItsBin) {
  const auto engine = engine_of(config_of("lr"), click_shape());
  const data::Examples batch = clicks(100, 3);
  const auto partial = engine->evaluate(batch);
  ASSERT_TRUE(partial);
  // Untrained, every probability is one half.
  ASSERT_EQ(partial->bins, std::vector<std::uint32_t>{wire::EvalPartial::kScoreBins / 2});
  const auto positives =
      static_cast<std::uint64_t>(std::count(batch.labels.begin(), batch.labels.end(), 1.0F));
  EXPECT_EQ(partial->positives[0], positives);
  EXPECT_EQ(partial->negatives[0], 100 - positives);
  EXPECT_EQ(partial->correct, positives);
  EXPECT_NEAR(partial->loss_sum, 100 * std::log(2.0), 1e-4);
}

TEST(TorchEngine, AModelThatDoesNotFitTheDataSaysSo) {
  for (const auto& [model, shape] :
       {std::pair{"resnet", click_shape()}, std::pair{"deepfm", image_shape()},
        std::pair{"xdeepfm", image_shape()}, std::pair{"dlrm", image_shape()},
        std::pair{"lr", image_shape()}, std::pair{"xyz", click_shape()}}) {
    const auto engine = make_torch_engine(config_of(model), shape);
    ASSERT_FALSE(engine) << model;
    EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
    EXPECT_NE(engine.error().message.find(model), std::string::npos);
  }
  EXPECT_FALSE(make_torch_engine(config_of("lr", "lion"), click_shape()));
}

}  // namespace
}  // namespace antdt::trainer
