#include "trainer/torch/embedding.h"
#include "trainer/torch/models/models.h"

namespace antdt::trainer {
namespace {

constexpr double kEmbeddingDeviation = 0.01;
const std::vector<std::uint32_t> kDefaultHidden{64, 32};

std::int64_t signed_of(std::uint64_t n) { return static_cast<std::int64_t>(n); }

const std::vector<std::uint32_t>& hidden_of(const TrainerConfig& config) {
  return config.hidden.empty() ? kDefaultHidden : config.hidden;
}

// Starts at zero, as logistic regression does.
torch::nn::Linear zero_linear(std::int64_t inputs) {
  torch::nn::Linear linear(inputs, 1);
  const torch::NoGradGuard no_grad;
  linear->weight.zero_();
  linear->bias.zero_();
  return linear;
}

}  // namespace

LogisticRegression::LogisticRegression(const data::DataShape& shape) {
  if (shape.id_width > 0) {
    table_ = register_parameter("weights", torch::zeros({signed_of(shape.id_rows), 1}));
  }
  dense_ = register_module("dense", zero_linear(signed_of(shape.dense_width)));
}

torch::Tensor LogisticRegression::forward(const TensorBatch& batch) {
  torch::Tensor out = dense_(batch.dense).squeeze(1);
  if (table_.defined()) out = out + embedding_rows(table_, batch.ids).sum({1, 2});
  return out;
}

LayerStack::LayerStack(std::int64_t inputs, const std::vector<std::uint32_t>& hidden,
                       std::int64_t outputs) {
  for (const std::uint32_t width : hidden) {
    layers_.emplace_back(inputs, static_cast<std::int64_t>(width));
    inputs = width;
  }
  layers_.emplace_back(inputs, outputs);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    register_module("layer" + std::to_string(i), layers_[i]);
  }
}

torch::Tensor LayerStack::forward(torch::Tensor x) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 < layers_.size()) x = x.relu_();
  }
  return x;
}

DeepFm::DeepFm(const TrainerConfig& config, const data::DataShape& shape) {
  const auto dim = signed_of(config.embedding_dim);
  torch::Tensor table = torch::randn({signed_of(shape.id_rows), 1 + dim}) * kEmbeddingDeviation;
  table.select(1, 0).zero_();  // first-order weights
  table_ = register_parameter("table", table);
  dense_ = register_module("dense", zero_linear(signed_of(shape.dense_width)));
  const std::int64_t inputs = signed_of(shape.id_width) * dim + signed_of(shape.dense_width);
  deep_ = register_module("deep", std::make_shared<LayerStack>(inputs, hidden_of(config), 1));
}

torch::Tensor DeepFm::forward(const TensorBatch& batch) {
  const FactorizedFields fields = factorized_fields(table_, batch.ids);
  const torch::Tensor deep = deep_->forward(torch::cat({fields.vectors, batch.dense}, 1));
  return fields.linear + (dense_(batch.dense) + deep).squeeze(1);
}

Mlp::Mlp(const TrainerConfig& config, const data::DataShape& shape) {
  const auto dim = signed_of(config.embedding_dim);
  std::int64_t inputs = signed_of(shape.dense_width);
  if (shape.id_width > 0) {
    table_ = register_parameter(
        "table", torch::randn({signed_of(shape.id_rows), dim}) * kEmbeddingDeviation);
    inputs += signed_of(shape.id_width) * dim;
  }
  layers_ = register_module(
      "layers", std::make_shared<LayerStack>(inputs, hidden_of(config), outputs_of(shape)));
}

torch::Tensor Mlp::forward(const TensorBatch& batch) {
  torch::Tensor x = batch.dense;
  if (table_.defined()) x = torch::cat({embedding_rows(table_, batch.ids).flatten(1), x}, 1);
  const torch::Tensor out = layers_->forward(x);
  return out.size(1) == 1 ? out.squeeze(1) : out;
}

}  // namespace antdt::trainer
