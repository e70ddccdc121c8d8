// The click models against their papers, written out as loops over single numbers.
#include "trainer/torch/models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/torch_testing.h"
#include "trainer/torch/models/interactions.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {
namespace {

// The same result and, in an arbitrary direction, the same gradients of all arguments.
void expect_same(const torch::Tensor& got, const std::vector<torch::Tensor>& got_from,
                 const torch::Tensor& want, const std::vector<torch::Tensor>& want_from) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_TRUE(torch::allclose(got, want, 1e-4, 1e-4));
  const torch::Tensor direction = torch::randn_like(want);
  (got * direction).sum().backward();
  (want * direction).sum().backward();
  for (std::size_t i = 0; i < got_from.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got_from[i].grad(), want_from[i].grad(), 1e-3, 1e-3))
        << "gradient of argument " << i;
  }
}

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& of) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& t : of) all.push_back(leaf(t.detach().clone()));
  return all;
}

TEST(CompressedInteractions, AreTheWeightedProductsOfAllPairsInEachDimension) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({3, 2, 4});
  const torch::Tensor x0 = torch::randn({3, 2, 5});
  const torch::Tensor w = torch::randn({6, 20});
  const torch::Tensor got = compressed_interactions(x, x0, w);
  ASSERT_EQ(got.sizes(), (torch::IntArrayRef{3, 2, 6}));
  for (int b = 0; b < 3; ++b) {
    for (int d = 0; d < 2; ++d) {
      for (int h = 0; h < 6; ++h) {
        double want = 0;
        for (int i = 0; i < 4; ++i) {
          for (int j = 0; j < 5; ++j) {
            want += w[h][i * 5 + j].item<double>() * x[b][d][i].item<double>() *
                    x0[b][d][j].item<double>();
          }
        }
        EXPECT_NEAR(got[b][d][h].item<double>(), want, 1e-5);
      }
    }
  }
}

// More rows than are multiplied in one go, and no multiple of them.
TEST(CompressedInteractions, ALargeBatchHasTheGradientsOfTheWholeProduct) {
  torch::manual_seed(2);
  const std::vector<torch::Tensor> ours = copies(
      {torch::randn({301, 3, 24}), torch::randn({301, 3, 20}), torch::randn({5, 480}) * 0.1});
  const std::vector<torch::Tensor> theirs = copies(ours);
  expect_same(
      compressed_interactions(ours[0], ours[1], ours[2]), ours,
      torch::einsum("bdi,bdj,hij->bdh", {theirs[0], theirs[1], theirs[2].view({5, 24, 20})}),
      theirs);
}

// The vectors are multiplied with themselves, as in the first layer.
TEST(CompressedInteractions, TheProductOfVectorsWithThemselvesHasBothGradients) {
  torch::manual_seed(3);
  const std::vector<torch::Tensor> ours = copies({torch::randn({7, 3, 4}), torch::randn({5, 16})});
  const std::vector<torch::Tensor> theirs = copies(ours);
  expect_same(compressed_interactions(ours[0], ours[0], ours[1]), ours,
              torch::einsum("bdi,bdj,hij->bdh", {theirs[0], theirs[0], theirs[1].view({5, 4, 4})}),
              theirs);
}

TEST(PairwiseProducts, AreTheLowerTriangleRowByRow) {
  torch::manual_seed(4);
  const torch::Tensor v = torch::randn({3, 5, 4});
  const torch::Tensor got = pairwise_products(v);
  ASSERT_EQ(got.sizes(), (torch::IntArrayRef{3, 10}));
  for (int b = 0; b < 3; ++b) {
    int at = 0;
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < i; ++j, ++at) {
        double want = 0;
        for (int k = 0; k < 4; ++k) want += v[b][i][k].item<double>() * v[b][j][k].item<double>();
        EXPECT_NEAR(got[b][at].item<double>(), want, 1e-5) << i << ", " << j;
      }
    }
  }
}

TEST(PairwiseProducts, HaveTheGradientsOfTheWholeProduct) {
  torch::manual_seed(5);
  const std::vector<torch::Tensor> ours = copies({torch::randn({9, 6, 5})});
  const std::vector<torch::Tensor> theirs = copies(ours);
  const torch::Tensor below = torch::tril_indices(6, 6, -1);
  const torch::Tensor all = torch::bmm(theirs[0], theirs[0].transpose(1, 2));
  expect_same(pairwise_products(ours[0]), ours,
              all.index({torch::indexing::Slice(), below[0], below[1]}), theirs);
}

constexpr std::int64_t kTableRows = 30;
constexpr std::int64_t kDim = 3;

data::DataShape model_shape() {
  data::DataShape shape;
  shape.dense_width = 2;
  shape.id_width = 3;
  shape.id_rows = kTableRows;
  shape.classes = 2;
  return shape;
}

TrainerConfig model_config(const std::string& model) {
  TrainerConfig config = parse_trainer_config("{}").value();
  config.seed = 5;
  config.model = model;
  config.optimizer = "adam";
  config.learning_rate = 0.01;
  config.embedding_dim = kDim;
  config.hidden = {6, 5};
  config.cin_layers = {4, 2};
  config.bottom_hidden = {7};
  return config;
}

// Whether a click depends on the first two fields together, and on neither of them alone.
data::Examples model_clicks(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  data::Examples out;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<std::int64_t>(random() % 10);
    const auto b = static_cast<std::int64_t>(random() % 10);
    out.ids.insert(out.ids.end(), {a, 10 + b, 20 + static_cast<std::int64_t>(random() % 10)});
    const float x = static_cast<float>(random() % 1000) / 1000;
    out.dense.insert(out.dense.end(), {x, 0.5F - x});
    out.labels.push_back((a < 5) != (b < 5) ? 1.0F : 0.0F);
  }
  return out;
}

using Values = std::vector<double>;

Values relu(Values x) {
  for (double& v : x) v = std::max(v, 0.0);
  return x;
}

// A model with parameters that are all different, and the parts of its paper's
// formulas as loops over them, in double precision.
class ClickModel : public ::testing::Test {
 protected:
  void make(const std::string& name) {
    auto made = make_model(model_config(name), model_shape());
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
    torch::manual_seed(11);
    const torch::NoGradGuard no_grad;
    for (auto& item : model_->named_parameters()) {
      item.value().normal_(0, 0.7);
      parameters_[item.key()] = item.value();
    }
  }
  [[nodiscard]] torch::Tensor forward() const {
    const torch::NoGradGuard no_grad;
    return model_->forward(tensors_over(examples_, model_shape()));
  }
  [[nodiscard]] double at(const std::string& name, std::int64_t row, std::int64_t column) const {
    return parameters_.at(name)[row][column].item<double>();
  }
  [[nodiscard]] Values dense(std::size_t record) const {
    return {examples_.dense[record * 2], examples_.dense[record * 2 + 1]};
  }
  // The record's embeddings: columns [first, first + kDim) of its rows.
  [[nodiscard]] std::vector<Values> vectors(std::size_t record, std::int64_t first) const {
    std::vector<Values> all;
    for (std::size_t f = 0; f < 3; ++f) {
      Values& v = all.emplace_back();
      for (std::int64_t k = 0; k < kDim; ++k) {
        v.push_back(at("table", examples_.ids[record * 3 + f], first + k));
      }
    }
    return all;
  }
  [[nodiscard]] Values linear(const std::string& name, const Values& x) const {
    const torch::Tensor& weight = parameters_.at(name + ".weight");
    EXPECT_EQ(weight.size(1), static_cast<std::int64_t>(x.size())) << name;
    Values out;
    for (std::int64_t o = 0; o < weight.size(0); ++o) {
      out.push_back(parameters_.at(name + ".bias")[o].item<double>());
      for (std::size_t i = 0; i < x.size(); ++i) {
        out.back() += at(name + ".weight", o, static_cast<std::int64_t>(i)) * x[i];
      }
    }
    return out;
  }
  [[nodiscard]] Values stack(const std::string& name, Values x, int layers) const {
    for (int i = 0; i < layers; ++i) {
      x = linear(name + ".layer" + std::to_string(i), x);
      if (i + 1 < layers) x = relu(x);
    }
    return x;
  }
  std::shared_ptr<Model> model_;
  std::map<std::string, torch::Tensor> parameters_;
  data::Examples examples_ = model_clicks(8, 1);
};

TEST_F(ClickModel, XDeepFmIsTheSumOfFirstOrderInteractionsAndNetwork) {
  make("xdeepfm");
  const torch::Tensor got = forward();
  for (std::size_t r = 0; r < examples_.count; ++r) {
    const std::vector<Values> x0 = vectors(r, 1);
    double want = linear("dense", dense(r))[0];
    Values network;
    for (std::size_t f = 0; f < 3; ++f) {
      want += at("table", examples_.ids[r * 3 + f], 0);
      network.insert(network.end(), x0[f].begin(), x0[f].end());
    }
    Values pooled;
    std::vector<Values> before = x0;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const std::string name = "interactions.layer" + std::to_string(layer);
      const std::size_t maps = model_config("xdeepfm").cin_layers[layer];
      std::vector<Values> now(maps, Values(kDim, 0.0));
      for (std::size_t h = 0; h < maps; ++h) {
        for (std::size_t d = 0; d < kDim; ++d) {
          for (std::size_t i = 0; i < before.size(); ++i) {
            for (std::size_t j = 0; j < 3; ++j) {
              now[h][d] +=
                  at(name, static_cast<std::int64_t>(h), static_cast<std::int64_t>(i * 3 + j)) *
                  before[i][d] * x0[j][d];
            }
          }
        }
        pooled.push_back(now[h][0] + now[h][1] + now[h][2]);
      }
      before = now;
    }
    for (const double x : dense(r)) network.push_back(x);
    want += linear("of_interactions", pooled)[0] + stack("deep", network, 3)[0];
    EXPECT_NEAR(got[static_cast<std::int64_t>(r)].item<double>(), want, 1e-4) << "record " << r;
  }
}

TEST_F(ClickModel, DlrmsTopNetworkSeesTheDenseVectorAndAllPairsOfVectors) {
  make("dlrm");
  const torch::Tensor got = forward();
  for (std::size_t r = 0; r < examples_.count; ++r) {
    const Values bottom = relu(stack("bottom", dense(r), 2));
    ASSERT_EQ(bottom.size(), static_cast<std::size_t>(kDim));
    std::vector<Values> all{bottom};
    for (const Values& v : vectors(r, 0)) all.push_back(v);
    Values top = bottom;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        top.push_back(all[i][0] * all[j][0] + all[i][1] * all[j][1] + all[i][2] * all[j][2]);
      }
    }
    EXPECT_NEAR(got[static_cast<std::int64_t>(r)].item<double>(), stack("top", top, 3)[0], 1e-4)
        << "record " << r;
  }
}

class EveryClickModel : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryClickModel, ::testing::Values("deepfm", "xdeepfm", "dlrm"),
                         [](const auto& p) { return p.param; });

TEST_P(EveryClickModel, GradientsReachEveryParameterAndOfTheTableOnlyTheRowsThatWereUsed) {
  const auto made = make_model(model_config(GetParam()), model_shape());
  ASSERT_TRUE(made) << made.error().message;
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& item : (*made)->named_parameters()) named.emplace_back(item.key(), item.value());
  const FlatParameters flat(named);
  const data::Examples batch = model_clicks(4, 2);
  (*made)->forward(tensors_over(batch, model_shape())).sum().backward();
  for (const auto& [name, parameter] : named) {
    EXPECT_GT(parameter.grad().abs().max().item<float>(), 0.0F) << name;
  }
  const torch::Tensor of_table = (*made)->named_parameters()["table"].grad();
  for (std::int64_t id = 0; id < kTableRows; ++id) {
    const bool used = std::find(batch.ids.begin(), batch.ids.end(), id) != batch.ids.end();
    EXPECT_EQ(of_table[id].abs().max().item<float>() > 0, used) << "row " << id;
  }
}

// The mean loss on records that were not trained on.
double loss_after_training(const TrainerConfig& config) {
  auto engine = make_torch_engine(config, model_shape());
  EXPECT_TRUE(engine) << engine.error().message;
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    for (unsigned i = 0; i < 600; ++i) {
      (*engine)->begin_step(collective);
      EXPECT_TRUE((*engine)->compute(model_clicks(64, i), true));
      EXPECT_TRUE((*engine)->finish_reduction());
      EXPECT_TRUE((*engine)->apply(64));
    }
  });
  const auto partial = (*engine)->evaluate(model_clicks(500, 10000));
  EXPECT_TRUE(partial);
  return partial->loss_sum / 500;
}

TEST_P(EveryClickModel, LearnsWhatFieldsMeanTogetherAndLogisticRegressionDoesNot) {
  EXPECT_GT(loss_after_training(model_config("lr")), 0.65);  // a coin's is 0.693
  EXPECT_LT(loss_after_training(model_config(GetParam())), 0.3);
}

TEST_P(EveryClickModel, WithoutCategoriesIsAnError) {
  data::DataShape numbers = model_shape();
  numbers.id_width = 0;
  const auto model = make_model(model_config(GetParam()), numbers);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(model.error().message,
              ::testing::HasSubstr("'" + GetParam() + "' needs category columns"));
}

TEST(Dlrm, WithoutNumbersIsAnError) {
  data::DataShape categories = model_shape();
  categories.dense_width = 0;
  const auto model = make_model(model_config("dlrm"), categories);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, ::testing::HasSubstr("'dlrm' needs numeric columns"));
}

TEST(XDeepFm, WithoutInteractionLayersIsAnError) {
  TrainerConfig config = model_config("xdeepfm");
  config.cin_layers.clear();
  const auto model = make_model(config, model_shape());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, ::testing::HasSubstr("trainer.cin_layers is empty"));
}

TEST(ModelsOfCategoriesAlone, TrainWithoutNumbers) {
  data::DataShape categories = model_shape();
  categories.dense_width = 0;
  data::Examples batch = model_clicks(64, 1);
  batch.dense.clear();
  for (const char* name : {"lr", "deepfm", "xdeepfm", "mlp"}) {
    const auto engine = make_torch_engine(model_config(name), categories);
    ASSERT_TRUE(engine) << engine.error().message;
    LocalGroup group(1);
    std::vector<double> losses;
    group.run([&](Collective& collective) {
      for (int i = 0; i < 20; ++i) {
        (*engine)->begin_step(collective);
        const auto sums = (*engine)->compute(batch, true);
        ASSERT_TRUE(sums) << sums.error().message;
        losses.push_back(sums->loss);
        ASSERT_TRUE((*engine)->finish_reduction());
        ASSERT_TRUE((*engine)->apply(64));
      }
    });
    EXPECT_LT(losses.back(), losses.front()) << name;
  }
}

}  // namespace
}  // namespace antdt::trainer
