// A worker's replica of the dense parameters, and models that keep one.
#include "trainer/torch/replicas/elastic_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/torch/engine_testing.h"
#include "trainer/torch/ps_model.h"

namespace antdt::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Replicated {
  std::vector<float> values{1, 2, 3}, gradients{2, 4, 6};
  ElasticReplica replica;
  explicit Replicated(float share, ps::UpdateRule::Kind kind = ps::UpdateRule::Kind::kSgd)
      : replica(values, gradients, {1, {0, 1}}, 2, {kind, 0.5F, 0, 0}, share) {}
};

TEST(ElasticReplica, AnExchangeTakesItsShareOfTheDistanceFromBothSides) {
  Replicated r(0.25F);
  const std::vector<float> centre{5, 2, -1, 0};
  const ps::TableGradient moved = r.replica.exchange(centre);
  EXPECT_THAT(r.values, ElementsAre(2, 2, 2));
  EXPECT_EQ(moved.table, 1U);
  EXPECT_THAT(moved.gradient.keys, ElementsAre(0, 1));
  EXPECT_THAT(moved.gradient.values, ElementsAre(-1, 0, 1, 0)) << "what fills the last row is zero";
  for (std::size_t i = 0; i < 3; ++i) {  // what one side loses the other gains
    EXPECT_FLOAT_EQ(r.values[i] + centre[i] + moved.gradient.values[i],
                    (std::vector<float>{1, 2, 3})[i] + centre[i]);
  }
}

TEST(ElasticReplica, TwoReplicasAndTheirCentreMeet) {
  Replicated a(0.5F), b(0.5F);
  b.values = {9, 9, 9};
  std::vector<float> centre{0, 0, 0, 0};
  for (int round = 0; round < 60; ++round) {
    for (Replicated* r : {&a, &b}) {
      const auto moved = r->replica.exchange(centre);
      for (std::size_t i = 0; i < centre.size(); ++i) centre[i] += moved.gradient.values[i];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.values[i], b.values[i], 1e-4);
    EXPECT_NEAR(a.values[i], centre[i], 1e-4);
    EXPECT_NEAR(3 * centre[i], static_cast<float>(i + 1) + 9, 1e-3) << "nothing is lost or made";
  }
}

TEST(ElasticReplica, ABatchIsOneStepOfItsOptimizerByTheMeanGradient) {
  Replicated r(0.5F);
  r.replica.update(2);
  EXPECT_THAT(r.values, ElementsAre(0.5F, 1, 1.5F));
  r.replica.set_rate(0.5);
  r.replica.update(2);
  EXPECT_THAT(r.values, ElementsAre(0.25F, 0.5F, 0.75F));
  r.replica.update(0);
  EXPECT_THAT(r.values, ElementsAre(0.25F, 0.5F, 0.75F)) << "a batch without weight";
}

TEST(ElasticReplica, ItsOptimizerBeginsAnewWithTheCentre) {
  Replicated fresh(0.5F, ps::UpdateRule::Kind::kAdagrad), old(0.5F, ps::UpdateRule::Kind::kAdagrad);
  old.replica.update(1);
  const std::vector<float> centre{7, 8, 9, 0};
  fresh.replica.begin(centre);
  old.replica.begin(centre);
  EXPECT_THAT(old.values, ElementsAre(7, 8, 9));
  fresh.replica.update(1);
  old.replica.update(1);
  EXPECT_EQ(old.values, fresh.values);
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
