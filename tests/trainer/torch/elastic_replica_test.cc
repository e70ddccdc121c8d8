// A worker's replica of the dense parameters, and models that keep one.
#include "trainer/torch/replicas/elastic_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/trainer/torch/engine_testing.h"
#include "trainer/torch/ps_model.h"

namespace antdt::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Replicated {
  std::vector<float> gradients{2, 4, 6};
  ElasticReplica replica;
  explicit Replicated(float share, ps::UpdateRule::Kind kind = ps::UpdateRule::Kind::kSgd,
                      const std::vector<float>& first = {1, 2, 3},
                      ElasticReplica::Carries carries = ElasticReplica::Carries::kDistance)
      : replica(first, {1, {0, 1}}, 2, {kind, 0.5F, 0, 0}, share, carries) {}
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> now(3);
    replica.read(now);
    return now;
  }
};

TEST(ElasticReplica, AnExchangeTakesItsShareOfTheDistanceFromBothSides) {
  Replicated r(0.25F);
  const std::vector<float> centre{5, 2, -1, 0};
  const ps::TableGradient moved = r.replica.exchange(centre);
  EXPECT_THAT(r.values(), ElementsAre(2, 2, 2));
  EXPECT_EQ(moved.table, 1U);
  EXPECT_THAT(moved.gradient.keys, ElementsAre(0, 1));
  EXPECT_THAT(moved.gradient.values, ElementsAre(-1, 0, 1, 0)) << "what fills the last row is zero";
  for (std::size_t i = 0; i < 3; ++i) {  // what one side loses the other gains
    EXPECT_FLOAT_EQ(r.values()[i] + centre[i] + moved.gradient.values[i],
                    (std::vector<float>{1, 2, 3})[i] + centre[i]);
  }
}

TEST(ElasticReplica, TwoReplicasAndTheirCentreMeet) {
  Replicated a(0.5F), b(0.5F, ps::UpdateRule::Kind::kSgd, {9, 9, 9});
  std::vector<float> centre{0, 0, 0, 0};
  for (int round = 0; round < 60; ++round) {
    for (Replicated* r : {&a, &b}) {
      const auto moved = r->replica.exchange(centre);
      for (std::size_t i = 0; i < centre.size(); ++i) centre[i] += moved.gradient.values[i];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.values()[i], b.values()[i], 1e-4);
    EXPECT_NEAR(a.values()[i], centre[i], 1e-4);
    EXPECT_NEAR(3 * centre[i], static_cast<float>(i + 1) + 9, 1e-3) << "nothing is lost or made";
  }
}

// One that sends itself, for a mean (S-MA, S-BMUF).
struct Averaged : Replicated {
  explicit Averaged(float share, const std::vector<float>& first = {1, 2, 3})
      : Replicated(share, ps::UpdateRule::Kind::kSgd, first, ElasticReplica::Carries::kReplica) {}
  // What it sends.
  std::vector<float> exchange(const std::vector<float>& centre) {
    return replica.exchange(centre).gradient.values;
  }
};

TEST(ElasticReplica, ForAMeanItSendsItselfAfterItsShareOfTheDistance) {
  Averaged a(0.25F);
  const ps::TableGradient sent = a.replica.exchange(std::vector<float>{5, 2, -1, 0});
  EXPECT_THAT(a.values(), ElementsAre(2, 2, 2));
  EXPECT_THAT(sent.gradient.keys, ElementsAre(0, 1));
  EXPECT_THAT(sent.gradient.values, ElementsAre(2, 2, 2, 0));
}

TEST(ElasticReplica, WhatIsTrainedBetweenTwoExchangesIsNotTakenBack) {
  Averaged a(0.5F);
  EXPECT_THAT(a.exchange({1, 2, 3, 0}), ElementsAre(1, 2, 3, 0)) << "the centre is itself";
  a.replica.update(a.gradients, 2);
  EXPECT_THAT(a.exchange({1, 2, 3, 0}), ElementsAre(0.5F, 1, 1.5F, 0))
      << "a worker alone: the mean is the replica as it was sent";
  a.replica.update(a.gradients, 2);  // to 0, 0, 0
  EXPECT_THAT(a.exchange({2.5F, 1, 0.5F, 0}), ElementsAre(1, 0, -0.5F, 0))
      << "half of the distance of what was sent, 0.5 1 1.5, to the mean";
}

TEST(ElasticReplica, ReplicasThatSendThemselvesMeetAtTheirMean) {
  Averaged a(0.5F), b(0.5F, {9, 9, 9});
  std::vector<float> of_a{1, 2, 3, 0}, of_b{9, 9, 9, 0};
  a.replica.begin(of_a);
  b.replica.begin(of_b);
  for (int round = 0; round < 60; ++round) {
    std::vector<float> mean(4);
    for (std::size_t i = 0; i < 4; ++i) mean[i] = (of_a[i] + of_b[i]) / 2;
    of_a = a.exchange(mean);
    of_b = b.exchange(mean);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.values()[i], 5 + 0.5 * static_cast<double>(i), 1e-5);
    EXPECT_NEAR(b.values()[i], a.values()[i], 1e-5);
  }
}

TEST(ElasticReplica, ABatchIsOneStepOfItsOptimizerByTheMeanGradient) {
  Replicated r(0.5F);
  r.replica.update(r.gradients, 2);
  EXPECT_THAT(r.values(), ElementsAre(0.5F, 1, 1.5F));
  r.replica.set_rate(0.5);
  r.replica.update(r.gradients, 2, 1, 2);  // as the second of two threads
  EXPECT_THAT(r.values(), ElementsAre(0.25F, 0.5F, 0.75F));
  r.replica.update(r.gradients, 0);
  EXPECT_THAT(r.values(), ElementsAre(0.25F, 0.5F, 0.75F)) << "a batch without weight";
}

TEST(ElasticReplica, ItsOptimizerBeginsAnewWithTheCentre) {
  Replicated fresh(0.5F, ps::UpdateRule::Kind::kAdagrad), old(0.5F, ps::UpdateRule::Kind::kAdagrad);
  old.replica.update(old.gradients, 1);
  const std::vector<float> centre{7, 8, 9, 0};
  fresh.replica.begin(centre);
  old.replica.begin(centre);
  EXPECT_THAT(old.values(), ElementsAre(7, 8, 9));
  fresh.replica.update(fresh.gradients, 1);
  old.replica.update(old.gradients, 1);
  EXPECT_EQ(old.values(), fresh.values());
}

class ReplicatedModel : public ::testing::Test {
 protected:
  static TrainerConfig config(const std::string& model) {
    TrainerConfig config = config_of(model, "sgd");
    config.hidden = {4};
    config.sync = SyncStrategy::kShadowEasgd;
    config.shadow_alpha = 0.5;
    return config;
  }
  static data::Examples batch() { return clicks(2, 1); }
  static std::vector<std::vector<float>> some_values(const PsModel& model,
                                                     const std::vector<ps::TableKeys>& rows) {
    std::vector<std::vector<float>> values;
    for (const ps::TableKeys& r : rows) {
      values.emplace_back(r.keys.size() * model.tables()[r.table].width, 0.1F);
    }
    return values;
  }
};

TEST_F(ReplicatedModel, TrainsItsReplicaAndPushesOnlyWhatOthersShare) {
  auto model = make_torch_ps_model(config("deepfm"), click_shape()).value();
  ASSERT_NE(model->replica(), nullptr);
  EXPECT_EQ(model->tables().back().name, "dense");
  EXPECT_EQ(model->tables().back().rule, "sum");
  const auto centre = model->first_values().front().gradient.values;
  model->replica()->begin(centre);
  const auto rows = model->rows_of(batch());
  for (const ps::TableKeys& r : rows) EXPECT_NE(model->tables()[r.table].name, "dense");
  const auto computed = model->compute(batch(), rows, some_values(*model, rows)).value();
  EXPECT_EQ(computed.gradients.size(), rows.size());
  const ps::TableGradient moved = model->replica()->exchange(centre);
  EXPECT_NE(moved.gradient.values, std::vector<float>(centre.size(), 0))
      << "the replica is trained";
}

TEST_F(ReplicatedModel, UnderAMeanItPushesTheReplicaItself) {
  for (const SyncStrategy sync : {SyncStrategy::kShadowMa, SyncStrategy::kShadowBmuf}) {
    TrainerConfig averaged = config("deepfm");
    averaged.sync = sync;
    averaged.shadow_eta = 0.25;
    averaged.weight_decay = 0.1;
    auto model = make_torch_ps_model(averaged, click_shape()).value();
    const wire::PsTable& dense = model->tables().back();
    EXPECT_EQ(dense.rule, "mean");
    EXPECT_EQ(dense.learning_rate, sync == SyncStrategy::kShadowMa ? 1 : 0.25);
    EXPECT_EQ(dense.weight_decay, 0) << "the replica's optimizer has it";
    const auto centre = model->first_values().front().gradient.values;
    model->replica()->begin(centre);
    EXPECT_EQ(model->replica()->exchange(centre).gradient.values, centre);
  }
}

TEST_F(ReplicatedModel, ItsRowsHaveTheirOwnShareOfTheRateAndTheReplicaHasAllOfIt) {
  TrainerConfig with_share = config("deepfm");
  with_share.table_rate = 0.25;
  const auto whole = make_torch_ps_model(config("deepfm"), click_shape()).value();
  const auto model = make_torch_ps_model(with_share, click_shape()).value();
  ASSERT_EQ(model->tables().size(), whole->tables().size());
  ASSERT_GE(model->tables().size(), 2U);
  for (std::size_t i = 0; i + 1 < model->tables().size(); ++i) {
    EXPECT_DOUBLE_EQ(model->tables()[i].learning_rate, whole->tables()[i].learning_rate / 4);
  }
  std::vector<std::vector<float>> moved;
  for (const auto* m : {&whole, &model}) {
    const auto centre = (*m)->first_values().front().gradient.values;
    (*m)->replica()->begin(centre);
    const auto rows = (*m)->rows_of(batch());
    ASSERT_TRUE((*m)->compute(batch(), rows, some_values(**m, rows)));
    moved.push_back((*m)->replica()->exchange(centre).gradient.values);
  }
  EXPECT_EQ(moved[0], moved[1]);
}

TEST_F(ReplicatedModel, IsEvaluatedAtTheCentreAndGoesOnWithItsReplica) {
  auto model = make_torch_ps_model(config("deepfm"), click_shape()).value();
  const auto centre = model->first_values().front().gradient.values;
  model->replica()->begin(centre);
  auto rows = model->rows_of(batch());
  rows.push_back(model->replica()->centre_rows());
  auto values = some_values(*model, rows);
  const auto at_some = model->evaluate(batch(), rows, values).value();
  values.back().assign(values.back().size(), 3);
  const auto elsewhere = model->evaluate(batch(), rows, values).value();
  EXPECT_NE(at_some.loss_sum, elsewhere.loss_sum);
  EXPECT_EQ(model->replica()->exchange(centre).gradient.values,
            std::vector<float>(centre.size(), 0))
      << "the replica is still the centre with which it began";
}

// The rows' gradients of a batch, and what the replica was moved by.
struct Trained {
  std::vector<ps::TableGradient> gradients;
  BatchSums sums;
  std::vector<float> moved;
};

Trained trained_with(TrainerConfig config, std::uint32_t threads, const data::Examples& records) {
  config.shadow_threads = threads;
  auto model = make_torch_ps_model(config, click_shape()).value();
  const auto centre = model->first_values().front().gradient.values;
  model->replica()->begin(centre);
  const auto rows = model->rows_of(records);
  std::vector<std::vector<float>> values;
  for (const ps::TableKeys& r : rows) {
    values.emplace_back(r.keys.size() * model->tables()[r.table].width, 0.1F);
  }
  auto computed = model->compute(records, rows, values).value();
  return {std::move(computed.gradients), computed.sums,
          model->replica()->exchange(centre).gradient.values};
}

class HogwildModel : public ReplicatedModel, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, HogwildModel, ::testing::Values("deepfm", "xdeepfm", "dlrm"),
                         [](const auto& p) { return p.param; });

// At a rate of nearly 0 all threads compute at the same replica.
TEST_P(HogwildModel, ThePartsOfABatchAddUpToIt) {
  TrainerConfig still = config(GetParam());
  still.learning_rate = 1e-12;
  for (const bool weighted : {false, true}) {
    data::Examples records = clicks(37, 1);
    for (std::size_t i = 0; weighted && i < records.count; ++i) {
      records.weights.push_back(0.5F + static_cast<float>(i % 3));
    }
    const Trained one = trained_with(still, 1, records), three = trained_with(still, 3, records);
    EXPECT_DOUBLE_EQ(three.sums.weight, one.sums.weight);
    EXPECT_NEAR(three.sums.loss, one.sums.loss, 1e-4);
    ASSERT_EQ(three.gradients.size(), one.gradients.size());
    for (std::size_t t = 0; t < one.gradients.size(); ++t) {
      EXPECT_EQ(three.gradients[t].gradient.keys, one.gradients[t].gradient.keys);
      EXPECT_LT(
          max_difference(three.gradients[t].gradient.values, one.gradients[t].gradient.values),
          1e-4)
          << "table " << t;
    }
  }
}

TEST_P(HogwildModel, AThreadWithoutRecordsChangesNothing) {
  for (const char* optimizer : {"sgd", "adam"}) {
    TrainerConfig some = config(GetParam());
    some.optimizer = optimizer;
    const Trained alone = trained_with(some, 1, clicks(1, 3)),
                  two = trained_with(some, 2, clicks(1, 3));
    EXPECT_EQ(two.moved, alone.moved) << optimizer;
    EXPECT_EQ(two.sums.loss, alone.sums.loss);
  }
}

// Trains the replica and, by plain steps, the rows; returns the loss before and after.
std::pair<double, double> losses_of(const TrainerConfig& config) {
  auto model = make_torch_ps_model(config, click_shape()).value();
  const auto centre = model->first_values().front().gradient.values;
  model->replica()->begin(centre);
  std::mt19937 random(1);
  std::normal_distribution<float> first(0, 0.01F);
  std::vector<std::vector<float>> tables;
  for (std::size_t t = 0; t + 1 < model->tables().size(); ++t) {
    tables.emplace_back(click_shape().id_rows * model->tables()[t].width);
    std::ranges::generate(tables.back(), [&] { return first(random); });
  }
  std::vector<double> losses;
  for (unsigned step = 0; step < 300; ++step) {
    const data::Examples batch = clicks(64, step);
    const auto rows = model->rows_of(batch);
    std::vector<std::vector<float>> values;
    const auto each = [&](const ps::TableKeys& of, const auto& use) {
      const std::size_t width = model->tables()[of.table].width;
      for (std::size_t k = 0; k < of.keys.size() * width; ++k) {
        use(tables[of.table][of.keys[k / width] * width + k % width], k);
      }
    };
    for (const ps::TableKeys& of : rows) {
      auto& to = values.emplace_back();
      each(of, [&](float value, std::size_t) { to.push_back(value); });
    }
    const auto computed = model->compute(batch, rows, values).value();
    for (std::size_t t = 0; t < rows.size(); ++t) {
      each(rows[t], [&](float& value, std::size_t k) {
        value -= 0.3F / 64 * computed.gradients[t].gradient.values[k];
      });
    }
    losses.push_back(computed.sums.loss / computed.sums.weight);
  }
  const auto mean = [&](std::size_t from) {
    return std::accumulate(losses.begin() + static_cast<std::ptrdiff_t>(from),
                           losses.begin() + static_cast<std::ptrdiff_t>(from) + 20, 0.0) /
           20;
  };
  return {mean(0), mean(losses.size() - 20)};
}

TEST_P(HogwildModel, ThreadsLearnTogether) {
  TrainerConfig some = config(GetParam());
  some.optimizer = "adam";
  some.learning_rate = 0.001;  // threads make three times as many steps as one
  some.shadow_threads = 3;
  const auto [before, after] = losses_of(some);
  EXPECT_GT(before, 0.55);  // an untrained model's is 0.69
  EXPECT_LT(after, 0.8 * before);
}

TEST_F(ReplicatedModel, NeedsNoEmbeddingTable) {
  auto model = make_torch_ps_model(config("mlp"), image_shape());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->rows_of(images(4, 1)).empty());
  TrainerConfig other = config("resnet");
  other.sync = SyncStrategy::kPsAsp;
  const auto refused = make_torch_ps_model(other, image_shape());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no embedding table"));
}

}  // namespace
}  // namespace antdt::trainer
