// LibTorch's models on parameter servers: training on rows gives the same as training the whole
// table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/engine_testing.h"
#include "trainer/ps/rows/store.h"
#include "trainer/torch/batch_keys.h"
#include "trainer/torch/models/model.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/ps_model.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr std::int64_t kIds = 40;

data::DataShape ps_shape(std::uint64_t id_rows = kIds) {
  data::DataShape shape;
  shape.dense_width = 2;
  shape.id_width = 3;
  shape.id_rows = id_rows;
  shape.classes = 2;
  return shape;
}

TrainerConfig ps_config(const std::string& model, const std::string& optimizer = "sgd") {
  TrainerConfig config = config_of(model, optimizer);
  config.hidden = {40, 20};
  config.cin_layers = {6, 3};
  config.bottom_hidden = {7};
  return config;
}

// Clicks that depend on the first two fields together. The last field has the ids of the
// others, so a record has some of them twice. `every_id`: none is missing.
data::Examples ps_clicks(std::size_t count, unsigned seed, bool every_id = false) {
  std::mt19937 random(seed);
  data::Examples out;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto a =
        every_id ? static_cast<std::int64_t>(i) % kIds : static_cast<std::int64_t>(random() % 20);
    const auto b = 20 + static_cast<std::int64_t>(random() % 20);
    const auto c = random() % 8 == 0 ? a : static_cast<std::int64_t>(random() % kIds);
    out.ids.insert(out.ids.end(), {a, b, c});
    const float x = static_cast<float>(random() % 1000) / 1000;
    out.dense.insert(out.dense.end(), {x, 0.5F - x});
    out.labels.push_back((a < 10) != (b < 30) ? 1.0F : 0.0F);
  }
  return out;
}

std::unique_ptr<PsModel> model_of(const TrainerConfig& config, const data::DataShape& shape) {
  auto model = make_torch_ps_model(config, shape);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

ps::TableSpec spec_of(const wire::PsTable& table) {
  ps::TableSpec spec;
  spec.name = table.name;
  spec.width = table.width;
  const auto kind = ps::parse_update_rule(table.rule);
  EXPECT_TRUE(kind) << table.rule;
  spec.rule.kind = *kind;
  spec.rule.learning_rate = static_cast<float>(table.learning_rate);
  spec.rule.weight_decay = static_cast<float>(table.weight_decay);
  spec.init = table.init == "normal" ? ps::TableSpec::Init::kNormal : ps::TableSpec::Init::kZero;
  spec.init_scale = static_cast<float>(table.init_scale);
  return spec;
}

// The one server of a worker, without messages.
class Server {
 public:
  explicit Server(const PsModel& model) : store_(specs_of(model), 1) {}

  void put(const std::vector<ps::TableGradient>& values) {
    for (const ps::TableGradient& v : values) {
      store_.put_new(v.table, v.gradient.keys, v.gradient.values);
    }
  }
  [[nodiscard]] std::vector<float> read(std::uint32_t table,
                                        const std::vector<std::uint64_t>& keys) {
    std::vector<float> values(keys.size() * store_.tables()[table].width);
    store_.read(table, keys, reinterpret_cast<char*>(values.data()));
    return values;
  }
  [[nodiscard]] std::vector<std::vector<float>> pull(const std::vector<ps::TableKeys>& rows) {
    std::vector<std::vector<float>> values;
    for (const ps::TableKeys& r : rows) values.push_back(read(r.table, r.keys));
    return values;
  }
  // One step of one worker.
  BatchSums train(PsModel& model, const data::Examples& batch) {
    const auto rows = model.rows_of(batch);
    const auto computed = model.compute(batch, rows, pull(rows));
    EXPECT_TRUE(computed) << computed.error().message;
    const auto scale = static_cast<float>(1 / computed->sums.weight);
    for (const ps::TableGradient& g : computed->gradients) {
      store_.update(g.table, g.gradient.keys, g.gradient.values, scale);
    }
    return computed->sums;
  }
  [[nodiscard]] wire::EvalPartial evaluate(PsModel& model, const data::Examples& batch) {
    const auto rows = model.rows_of(batch);
    const auto partial = model.evaluate(batch, rows, pull(rows));
    EXPECT_TRUE(partial) << partial.error().message;
    return *partial;
  }

 private:
  static std::vector<ps::TableSpec> specs_of(const PsModel& model) {
    std::vector<ps::TableSpec> specs;
    for (const wire::PsTable& table : model.tables()) specs.push_back(spec_of(table));
    return specs;
  }
  ps::Store store_;
};

using Named = std::vector<std::pair<std::string, torch::Tensor>>;

// The offsets of the parameters of a TorchEngine in its state, and of the "dense" ones in the
// servers' table.
struct Layout {
  Layout(const TrainerConfig& config, const data::DataShape& shape) {
    const auto whole = make_model(config, shape);
    const auto apart = make_model(config, shape);
    all = FlatParameters(named(**whole, true));
    dense = FlatParameters(named(**apart, false));
  }
  static bool is_table(const std::string& name) { return name == "table" || name == "weights"; }
  static Named named(Model& model, bool table) {
    Named out;
    for (const auto& item : model.named_parameters()) {
      if (table || !is_table(item.key())) out.emplace_back(item.key(), item.value());
    }
    return out;
  }
  FlatParameters all, dense;
};

using Parameters = std::map<std::string, std::vector<float>>;

Parameters parameters_of(Engine& engine, const Layout& layout) {
  const std::span<std::byte> bytes = engine.state_parts().front();
  const auto* const values = reinterpret_cast<const float*>(bytes.data());
  Parameters out;
  for (const FlatParameters::Entry& entry : layout.all.entries()) {
    out[entry.name].assign(values + entry.first, values + entry.first + entry.count);
  }
  return out;
}

std::vector<std::uint64_t> keys_until(std::uint64_t end) {
  std::vector<std::uint64_t> keys(end);
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

// The engine's parameters as rows of the model's tables, and back.
class Translation {
 public:
  Translation(const PsModel& model, const Layout& layout) : model_(model), layout_(layout) {
    for (const wire::PsTable& table : model.tables()) {
      if (table.name != "dense") width_ += table.width;
    }
  }

  void put(const Parameters& parameters, Server& server) const {
    for (std::uint32_t t = 0; t < model_.tables().size(); ++t) {
      server.put({{t, rows(t, parameters)}});
    }
  }

  [[nodiscard]] Parameters read(Server& server) const {
    Parameters out;
    for (std::uint32_t t = 0; t < model_.tables().size(); ++t) {
      const wire::PsTable& table = model_.tables()[t];
      if (table.name == "dense") {
        const std::vector<float> values = server.read(t, dense_keys());
        for (const FlatParameters::Entry& e : layout_.dense.entries()) {
          const auto from = values.begin() + static_cast<std::ptrdiff_t>(e.first);
          out[e.name].assign(from, from + static_cast<std::ptrdiff_t>(e.count));
        }
        continue;
      }
      const std::vector<float> values = server.read(t, keys_until(kIds));
      auto& whole = out[table_name()];
      whole.resize(kIds * width_);
      for (std::size_t id = 0; id < kIds; ++id) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(id * table.width), table.width,
                    whole.begin() + static_cast<std::ptrdiff_t>(id * width_ + first_of(table)));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] std::string table_name() const { return model_.tables().front().name; }
  // The offset of this table's rows in those of the model: "first_order" comes before the rest.
  [[nodiscard]] std::size_t first_of(const wire::PsTable& table) const {
    return table.name == "first_order" || table.width == width_ ? 0 : 1;
  }
  [[nodiscard]] std::vector<std::uint64_t> dense_keys() const {
    return keys_until((layout_.dense.size() + 1023) / 1024);
  }
  [[nodiscard]] ps::Gradient rows(std::uint32_t t, const Parameters& parameters) const {
    const wire::PsTable& table = model_.tables()[t];
    if (table.name == "dense") {
      ps::Gradient rows{dense_keys(), std::vector<float>(dense_keys().size() * 1024)};
      for (const FlatParameters::Entry& e : layout_.dense.entries()) {
        std::ranges::copy(parameters.at(e.name),
                          rows.values.begin() + static_cast<std::ptrdiff_t>(e.first));
      }
      return rows;
    }
    ps::Gradient rows{keys_until(kIds), {}};
    const auto& whole = parameters.at(table_name());
    for (std::size_t id = 0; id < kIds; ++id) {
      const auto from = whole.begin() + static_cast<std::ptrdiff_t>(id * width_ + first_of(table));
      rows.values.insert(rows.values.end(), from, from + table.width);
    }
    return rows;
  }

  const PsModel& model_;
  const Layout& layout_;
  std::size_t width_ = 0;  // of the model's table
};

void expect_same(const Parameters& got, const Parameters& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want) {
    EXPECT_THAT(got.at(name), Pointwise(FloatNear(2e-6F), values)) << name;
  }
}

class EveryModelAndRule
    : public ::testing::TestWithParam<std::tuple<std::string, std::string, bool>> {};
INSTANTIATE_TEST_SUITE_P(
    Models, EveryModelAndRule,
    ::testing::Combine(::testing::Values("lr", "deepfm", "xdeepfm", "dlrm", "mlp"),
                       ::testing::Values("sgd", "adagrad", "adam"), ::testing::Bool()),
    [](const auto& p) {
      return std::get<0>(p.param) + "_" + std::get<1>(p.param) +
             (std::get<2>(p.param) ? "_weighted" : "");
    });

// On servers, Adam leaves a row that is not in the batch alone, and also its moments.
TEST_P(EveryModelAndRule, OnServersTrainsAsWithTheWholeTable) {
  const auto& [name, optimizer, weighted] = GetParam();
  const TrainerConfig config = ps_config(name, optimizer);
  const auto engine = make_torch_engine(config, ps_shape());
  ASSERT_TRUE(engine) << engine.error().message;
  const auto model = model_of(config, ps_shape());
  const Layout layout(config, ps_shape());
  const Translation translation(*model, layout);
  Server server(*model);
  const Parameters before = parameters_of(**engine, layout);
  translation.put(before, server);
  expect_same(translation.read(server), before);

  LocalGroup(1).run([&, weighted = weighted, optimizer = optimizer](Collective& collective) {
    for (unsigned i = 0; i < 12; ++i) {
      data::Examples batch = ps_clicks(50 + 7 * (i % 3), i, optimizer == "adam");
      if (weighted) {
        for (std::size_t r = 0; r < batch.count; ++r) {
          batch.weights.push_back(static_cast<float>(r % 3) * 0.75F);
        }
      }
      (*engine)->begin_step(collective);
      const auto want = (*engine)->compute(batch, true);
      ASSERT_TRUE(want) << want.error().message;
      ASSERT_TRUE((*engine)->finish_reduction());
      ASSERT_TRUE((*engine)->apply(want->weight));
      const BatchSums got = server.train(*model, batch);
      EXPECT_NEAR(got.loss, want->loss, 1e-4);
      EXPECT_EQ(got.weight, want->weight);
    }
  });
  const Parameters after = parameters_of(**engine, layout);
  expect_same(translation.read(server), after);
  for (const auto& [parameter, values] : after) {
    EXPECT_NE(values, before.at(parameter)) << parameter << " was not trained";
  }

  const data::Examples unseen = ps_clicks(200, 1000);
  const auto want = (*engine)->evaluate(unseen);
  ASSERT_TRUE(want) << want.error().message;
  const wire::EvalPartial got = server.evaluate(*model, unseen);
  EXPECT_EQ(got.records, 200U);
  EXPECT_EQ(got.correct, want->correct);
  EXPECT_NEAR(got.loss_sum, want->loss_sum, 1e-3);
  EXPECT_EQ(std::accumulate(got.positives.begin(), got.positives.end(), std::uint64_t{0}),
            std::accumulate(want->positives.begin(), want->positives.end(), std::uint64_t{0}));
}

// The share of pairs of a click and no click that are in order; those of one bin half.
double auc_of(const wire::EvalPartial& partial) {
  double below = 0;
  double right = 0;
  double positives = 0;
  for (std::size_t i = 0; i < partial.bins.size(); ++i) {
    const auto n = static_cast<double>(partial.negatives[i]);
    const auto p = static_cast<double>(partial.positives[i]);
    right += p * (below + n / 2);
    below += n;
    positives += p;
  }
  return right / (positives * below);
}

class EveryModelOnServers : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModelOnServers,
                         ::testing::Values("deepfm", "xdeepfm", "dlrm", "mlp"),
                         [](const auto& p) { return p.param; });

// Rows as the servers draw them, dense parameters as the worker puts them.
TEST_P(EveryModelOnServers, LearnsFromTheFirstValuesThatServersAndWorkersGive) {
  const auto model = model_of(ps_config(GetParam(), "adam"), ps_shape());
  Server server(*model);
  server.put(model->first_values());
  const data::Examples unseen = ps_clicks(1000, 5000);
  EXPECT_LT(auc_of(server.evaluate(*model, unseen)), 0.65);
  for (unsigned i = 0; i < 400; ++i) server.train(*model, ps_clicks(64, i));
  EXPECT_GT(auc_of(server.evaluate(*model, unseen)), 0.97);
}

TEST(TorchPsModel, FirstOrderWeightsBeginAtZeroAndEmbeddingsDoNot) {
  for (const char* name : {"deepfm", "xdeepfm"}) {
    const auto model = model_of(ps_config(name, "adagrad"), ps_shape());
    ASSERT_EQ(model->tables().size(), 3U);
    EXPECT_EQ(model->tables()[0].name, "table");
    EXPECT_EQ(model->tables()[0].width, 4U);
    EXPECT_EQ(model->tables()[0].rule, "adagrad");
    EXPECT_EQ(model->tables()[1].name, "first_order");
    EXPECT_EQ(model->tables()[2].name, "dense");
    Server server(*model);
    EXPECT_THAT(server.read(1, {1, 2, 3}), Each(0.0F));
    const std::vector<float> embeddings = server.read(0, keys_until(2000));
    double squares = 0;
    for (const float v : embeddings) squares += static_cast<double>(v) * v;
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(embeddings.size())), 0.01, 5e-4);
  }
}

TEST(TorchPsModel, TheSettingsOfTheJobAreThoseOfEveryTable) {
  TrainerConfig config = ps_config("dlrm", "adam");
  config.learning_rate = 0.25;
  config.weight_decay = 0.125;
  const auto model = model_of(config, ps_shape());
  ASSERT_EQ(model->tables().size(), 2U);
  for (const wire::PsTable& table : model->tables()) {
    EXPECT_EQ(table.rule, "adam");
    EXPECT_EQ(table.learning_rate, 0.25);
    EXPECT_EQ(table.weight_decay, 0.125);
  }
}

TEST(TorchPsModel, DenseParametersAreWholeBlocksTheLastFilledWithZeros) {
  const TrainerConfig config = ps_config("mlp");
  const auto model = model_of(config, ps_shape());
  const Layout layout(config, ps_shape());
  ASSERT_GT(layout.dense.size(), 1024U);
  ASSERT_NE(layout.dense.size() % 1024, 0U);
  const auto first = model->first_values();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].table, 1U);
  EXPECT_EQ(model->tables()[1].width, 1024U);
  EXPECT_EQ(first[0].gradient.keys, keys_until((layout.dense.size() + 1023) / 1024));
  const std::vector<float>& values = first[0].gradient.values;
  ASSERT_EQ(values.size(), first[0].gradient.keys.size() * 1024);
  const auto filled = static_cast<std::ptrdiff_t>(layout.dense.size());
  EXPECT_THAT(std::vector<float>(values.begin() + filled, values.end()), Each(0.0F));
  EXPECT_NE(std::accumulate(values.begin(), values.begin() + filled, 0.0F), 0);
}

TEST(TorchPsModel, FirstValuesFollowFromTheSeedAloneAndStayAfterTraining) {
  TrainerConfig config = ps_config("deepfm");
  const auto model = model_of(config, ps_shape());
  const auto values = [](const PsModel& of) { return of.first_values().front().gradient.values; };
  const std::vector<float> first = values(*model);
  Server server(*model);
  server.put(model->first_values());
  server.train(*model, ps_clicks(64, 1));
  EXPECT_EQ(values(*model), first);
  EXPECT_EQ(values(*model_of(config, ps_shape(1'000'000))), first);
  config.seed = 6;
  EXPECT_NE(values(*model_of(config, ps_shape())), first);
}

data::Examples record_of(std::vector<std::int64_t> ids) {
  data::Examples out;
  out.count = ids.size() / 3;
  out.ids = std::move(ids);
  out.dense.assign(out.count * 2, 0.5F);
  out.labels.assign(out.count, 1.0F);
  return out;
}

TEST(TorchPsModel, AnIdThatARecordHasTwiceIsOneRowWithBothGradients) {
  const auto model = model_of(ps_config("lr"), ps_shape());
  const data::Examples batch = record_of({7, 3, 7, 39, 7, 0});
  const auto rows = model->rows_of(batch);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].keys, ElementsAre(0, 3, 7, 39));
  Server server(*model);
  const auto computed = model->compute(batch, rows, server.pull(rows));
  ASSERT_TRUE(computed) << computed.error().message;
  // Untrained every probability is one half.
  EXPECT_EQ(computed->gradients[0].gradient.keys, rows[0].keys);
  EXPECT_THAT(computed->gradients[0].gradient.values, ElementsAre(-0.5F, -0.5F, -1.5F, -0.5F));
}

TEST(TorchPsModel, HoldsNoTableHoweverManyRowsThereAre) {
  const std::uint64_t rows = std::uint64_t{1} << 45;
  const auto model = model_of(ps_config("deepfm", "adagrad"), ps_shape(rows));
  Server server(*model);
  server.put(model->first_values());
  const auto last = static_cast<std::int64_t>(rows) - 1;
  const data::Examples batch = record_of({last, 0, 5, 1 << 20, last, 1LL << 33});
  EXPECT_THAT(model->rows_of(batch)[0].keys,
              ElementsAre(0, 5, 1 << 20, 1LL << 33, static_cast<std::uint64_t>(last)));
  double before = server.evaluate(*model, batch).loss_sum;
  for (int i = 0; i < 5; ++i) server.train(*model, batch);
  EXPECT_LT(server.evaluate(*model, batch).loss_sum, before);
}

// The memory of a large batch is kept for smaller ones.
TEST(TorchPsModel, ABatchLeavesNothingToTheNext) {
  for (const char* name : {"lr", "deepfm", "dlrm"}) {
    const auto model = model_of(ps_config(name), ps_shape());
    Server server(*model);
    server.put(model->first_values());
    const auto compute = [&](PsModel& with) {
      const data::Examples batch = ps_clicks(5, 3);
      const auto rows = with.rows_of(batch);
      const auto computed = with.compute(batch, rows, server.pull(rows));
      EXPECT_TRUE(computed) << computed.error().message;
      std::vector<float> all;
      for (const auto& g : computed->gradients) {
        all.insert(all.end(), g.gradient.values.begin(), g.gradient.values.end());
      }
      return all;
    };
    const auto alone = compute(*model);
    const data::Examples large = ps_clicks(300, 4);
    const auto rows = model->rows_of(large);
    ASSERT_TRUE(model->compute(large, rows, server.pull(rows)));
    ASSERT_TRUE(model->evaluate(large, rows, server.pull(rows)));
    EXPECT_THAT(compute(*model), Pointwise(FloatNear(1e-5F), alone)) << name;
    const auto another = model_of(ps_config(name), ps_shape());
    EXPECT_THAT(compute(*another), Pointwise(FloatNear(1e-5F), alone)) << name;
  }
}

TEST(TorchPsModel, WithoutIdsIsDenseAlone) {
  data::DataShape numbers = ps_shape();
  numbers.id_width = 0;
  for (const char* name : {"lr", "mlp"}) {
    const auto model = model_of(ps_config(name, "adam"), numbers);
    ASSERT_EQ(model->tables().size(), 1U);
    EXPECT_EQ(model->tables()[0].name, "dense");
    data::Examples batch = ps_clicks(64, 1);
    batch.ids.clear();
    for (std::size_t i = 0; i < batch.count; ++i) {
      batch.labels[i] = batch.dense[2 * i] > 0.5F ? 1.0F : 0.0F;
    }
    Server server(*model);
    server.put(model->first_values());
    const double before = server.train(*model, batch).loss;
    for (int i = 0; i < 100; ++i) server.train(*model, batch);
    EXPECT_LT(server.train(*model, batch).loss, before * 0.9) << name;
  }
}

TEST(TorchPsModel, RowsOfAnotherBatchOrOfTheWrongSizeAreAnError) {
  const auto model = model_of(ps_config("deepfm"), ps_shape());
  Server server(*model);
  const data::Examples batch = record_of({7, 3, 7});
  const auto rows = model->rows_of(batch);
  const auto values = server.pull(rows);
  ASSERT_TRUE(model->compute(batch, rows, values));

  const auto others = model->rows_of(record_of({7, 4, 7}));
  const auto missing = model->compute(batch, others, server.pull(others));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("id 3 has no row"));

  EXPECT_FALSE(model->compute(batch, {}, {}));
  for (std::size_t table = 0; table < rows.size(); ++table) {
    auto fewer = values;
    fewer[table].pop_back();
    EXPECT_FALSE(model->compute(batch, rows, fewer)) << "table " << table;
    EXPECT_FALSE(model->evaluate(batch, rows, fewer)) << "table " << table;
    auto swapped = rows;
    swapped[table].table ^= 1;
    EXPECT_FALSE(model->compute(batch, swapped, values)) << "table " << table;
  }
}

TEST(TorchPsModel, SettingsThatServersOrTheDataDoNotSupportAreRefused) {
  const auto refused = [](const TrainerConfig& config, const data::DataShape& shape) {
    const auto model = make_torch_ps_model(config, shape);
    EXPECT_FALSE(model);
    if (model) return std::string();
    EXPECT_EQ(model.error().kind, ErrorKind::kUsage);
    return model.error().message;
  };
  TrainerConfig momentum = ps_config("deepfm");
  momentum.momentum = 0.9;
  EXPECT_THAT(refused(momentum, ps_shape()), HasSubstr("trainer.momentum is 0.9"));
  EXPECT_THAT(refused(ps_config("deepfm", "lion"), ps_shape()),
              HasSubstr("trainer.optimizer 'lion' is not known"));
  EXPECT_THAT(refused(ps_config("deepfn"), ps_shape()), HasSubstr("'deepfn' is not known"));
  data::DataShape numbers = ps_shape();
  numbers.id_width = 0;
  EXPECT_THAT(refused(ps_config("deepfm"), numbers), HasSubstr("needs category columns"));
}

TEST(UniqueKeys, AreTheIdsOnceAndRising) {
  EXPECT_THAT(unique_keys({}), IsEmpty());
  EXPECT_THAT(unique_keys(std::vector<std::int64_t>{0}), ElementsAre(0));
  std::mt19937_64 random(1);
  for (const int bits : {1, 10, 11, 12, 22, 23, 40, 63}) {
    std::vector<std::int64_t> ids;
    for (int i = 0; i < 5000; ++i) {
      ids.push_back(static_cast<std::int64_t>(random() >> (64 - bits)));
    }
    const std::set<std::uint64_t> want(ids.begin(), ids.end());
    EXPECT_EQ(unique_keys(ids), std::vector<std::uint64_t>(want.begin(), want.end())) << bits;
    std::vector<std::int64_t> positions;
    KeyPositions find;
    const auto keys = unique_keys(ids);
    ASSERT_TRUE(find.find(keys, ids, positions));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(keys[static_cast<std::size_t>(positions[i])], static_cast<std::uint64_t>(ids[i]));
    }
  }
}

TEST(KeyPositions, AMissingIdIsAnErrorAlsoWithoutAnyKey) {
  KeyPositions positions_of;
  std::vector<std::int64_t> positions;
  EXPECT_TRUE(positions_of.find({}, {}, positions));
  EXPECT_FALSE(positions_of.find({}, std::vector<std::int64_t>{0}, positions));
  const std::vector<std::uint64_t> keys{4, 8};
  EXPECT_TRUE(positions_of.find(keys, std::vector<std::int64_t>{8, 4, 8}, positions));
  EXPECT_THAT(positions, ElementsAre(1, 0, 1));
  EXPECT_FALSE(positions_of.find(keys, std::vector<std::int64_t>{8, 5}, positions));
}

}  // namespace
}  // namespace antdt::trainer
