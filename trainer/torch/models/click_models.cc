#include <algorithm>
#include <cmath>

#include "trainer/torch/embedding.h"
#include "trainer/torch/models/interactions.h"
#include "trainer/torch/models/models.h"

namespace antdt::trainer {
namespace {

const std::vector<std::uint32_t> kDefaultHidden{64, 32};

std::int64_t signed_of(std::uint64_t n) { return static_cast<std::int64_t>(n); }

const std::vector<std::uint32_t>& hidden_of(const kit::Settings& settings) {
  return settings.hidden.empty() ? kDefaultHidden : settings.hidden;
}

// Starts at zero, as logistic regression does. LibTorch cannot initialise a layer without inputs,
// which data without numbers would have.
torch::nn::Linear zero_linear(std::int64_t inputs) {
  torch::nn::Linear linear(std::max<std::int64_t>(inputs, 1), 1);
  linear->weight.set_data(torch::zeros({1, inputs}));
  linear->bias.set_data(torch::zeros({1}));
  return linear;
}

// First-order weights, which start at zero, and embeddings side by side. All rows of a table on
// servers begin in the same way, so there they are two tables.
std::vector<kit::TableColumns> weights_and_embeddings(std::int64_t dim) {
  return {{"table", 1, dim, kEmbeddingDeviation}, {"first_order", 0, 1, 0}};
}

}  // namespace

LogisticRegression::LogisticRegression(const kit::DataShape& shape) {
  if (shape.id_width > 0) {
    table_ = register_table("weights", shape.id_rows, {{"weights", 0, 1, 0}});
  }
  dense_ = register_module("dense", zero_linear(signed_of(shape.dense_width)));
}

torch::Tensor LogisticRegression::forward(const Batch& batch) {
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

DeepFm::DeepFm(const kit::Settings& settings, const kit::DataShape& shape) {
  const auto dim = signed_of(settings.embedding_dim);
  table_ = register_table("table", shape.id_rows, weights_and_embeddings(dim));
  dense_ = register_module("dense", zero_linear(signed_of(shape.dense_width)));
  const std::int64_t inputs = signed_of(shape.id_width) * dim + signed_of(shape.dense_width);
  deep_ = register_module("deep", std::make_shared<LayerStack>(inputs, hidden_of(settings), 1));
}

torch::Tensor DeepFm::forward(const Batch& batch) {
  const FactorizedFields fields = factorized_fields(table_, batch.ids, batch.dense);
  const torch::Tensor deep = deep_->forward(fields.vectors);
  return fields.linear + (dense_(batch.dense) + deep).squeeze(1);
}

InteractionNetwork::InteractionNetwork(std::int64_t fields,
                                       const std::vector<std::uint32_t>& maps) {
  std::int64_t before = fields;
  for (const std::uint32_t count : maps) {
    const std::int64_t inputs = before * fields;
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));  // as in LibTorch's layers
    torch::Tensor weight = torch::empty({static_cast<std::int64_t>(count), inputs});
    weights_.push_back(register_parameter("layer" + std::to_string(weights_.size()),
                                          weight.uniform_(-bound, bound)));
    before = count;
  }
}

torch::Tensor InteractionNetwork::forward(const torch::Tensor& vectors) {
  const torch::Tensor by_dimension = vectors.transpose(1, 2).contiguous();
  torch::Tensor maps = by_dimension;
  std::vector<torch::Tensor> sums;
  for (const torch::Tensor& weight : weights_) {
    maps = compressed_interactions(maps, by_dimension, weight);
    sums.push_back(maps.sum(1));
  }
  return torch::cat(sums, 1);
}

std::int64_t InteractionNetwork::outputs() const {
  std::int64_t count = 0;
  for (const torch::Tensor& weight : weights_) count += weight.size(0);
  return count;
}

XDeepFm::XDeepFm(const kit::Settings& settings, const kit::DataShape& shape) {
  const auto dim = signed_of(settings.embedding_dim);
  const auto fields = signed_of(shape.id_width);
  table_ = register_table("table", shape.id_rows, weights_and_embeddings(dim));
  dense_ = register_module("dense", zero_linear(signed_of(shape.dense_width)));
  interactions_ = register_module(
      "interactions", std::make_shared<InteractionNetwork>(fields, settings.cin_layers));
  of_interactions_ =
      register_module("of_interactions", torch::nn::Linear(interactions_->outputs(), 1));
  const std::int64_t inputs = fields * dim + signed_of(shape.dense_width);
  deep_ = register_module("deep", std::make_shared<LayerStack>(inputs, hidden_of(settings), 1));
}

torch::Tensor XDeepFm::forward(const Batch& batch) {
  const torch::Tensor rows = embedding_rows(table_, batch.ids);
  const torch::Tensor vectors = rows.slice(2, 1);
  const torch::Tensor first_order = rows.select(2, 0).sum(1) + dense_(batch.dense).squeeze(1);
  const torch::Tensor interactions = of_interactions_(interactions_->forward(vectors));
  const torch::Tensor deep = deep_->forward(torch::cat({vectors.flatten(1), batch.dense}, 1));
  return first_order + (interactions + deep).squeeze(1);
}

Dlrm::Dlrm(const kit::Settings& settings, const kit::DataShape& shape) {
  const auto dim = signed_of(settings.embedding_dim);
  bottom_ = register_module("bottom", std::make_shared<LayerStack>(signed_of(shape.dense_width),
                                                                   settings.bottom_hidden, dim));
  table_ = register_table("table", shape.id_rows, {{"table", 0, dim, kEmbeddingDeviation}});
  const std::int64_t vectors = 1 + signed_of(shape.id_width);
  const std::int64_t inputs = dim + vectors * (vectors - 1) / 2;
  top_ = register_module("top", std::make_shared<LayerStack>(inputs, hidden_of(settings), 1));
}

torch::Tensor Dlrm::forward(const Batch& batch) {
  const torch::Tensor dense = bottom_->forward(batch.dense).relu();
  const torch::Tensor fields = embedding_rows(table_, batch.ids);
  const torch::Tensor products = pairwise_products(torch::cat({dense.unsqueeze(1), fields}, 1));
  return top_->forward(torch::cat({dense, products}, 1)).squeeze(1);
}

Mlp::Mlp(const kit::Settings& settings, const kit::DataShape& shape) {
  const auto dim = signed_of(settings.embedding_dim);
  std::int64_t inputs = signed_of(shape.dense_width);
  if (shape.id_width > 0) {
    table_ = register_table("table", shape.id_rows, {{"table", 0, dim, kEmbeddingDeviation}});
    inputs += signed_of(shape.id_width) * dim;
  }
  layers_ = register_module(
      "layers", std::make_shared<LayerStack>(inputs, hidden_of(settings), outputs_of(shape)));
}

torch::Tensor Mlp::forward(const Batch& batch) {
  torch::Tensor x = batch.dense;
  if (table_.defined()) x = torch::cat({embedding_rows(table_, batch.ids).flatten(1), x}, 1);
  const torch::Tensor out = layers_->forward(x);
  return out.size(1) == 1 ? out.squeeze(1) : out;
}

}  // namespace antdt::trainer
