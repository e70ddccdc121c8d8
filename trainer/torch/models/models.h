// The models, by name; make_model chooses.
#pragma once

#include <vector>

#include "trainer/torch/models/model.h"

namespace antdt::trainer {

// Embeddings begin as drawn from a normal distribution around 0 with this deviation.
inline constexpr double kEmbeddingDeviation = 0.01;

// A sum of one weight an id, a linear function of the dense features, a bias.
class LogisticRegression final : public Model {
 public:
  explicit LogisticRegression(const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x 1; undefined without ids
  torch::nn::Linear dense_ = nullptr;
};

// A chain of linear layers with ReLU between.
class LayerStack : public torch::nn::Module {
 public:
  LayerStack(std::int64_t inputs, const std::vector<std::uint32_t>& hidden, std::int64_t outputs);
  [[nodiscard]] torch::Tensor forward(torch::Tensor x);

 private:
  std::vector<torch::nn::Linear> layers_;
};

// Guo, Tang, Ye, Li and He, "DeepFM: a factorization-machine based neural
// network for CTR prediction", IJCAI 2017: first-order weights, pairwise
// interactions of the fields' embeddings, and a network over the embeddings and
// the dense features side by side, added up.
class DeepFm final : public Model {
 public:
  DeepFm(const TrainerConfig& config, const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x (1 + embedding_dim)
  torch::nn::Linear dense_ = nullptr;
  std::shared_ptr<LayerStack> deep_;
};

// The compressed interaction network of xDeepFM (below): layer k multiplies the maps
// of layer k - 1 with the embeddings, dimension by dimension, and mixes the products
// into its own maps, without an activation; so its maps are of degree k + 1. What
// leaves a layer is the sum of each map over the dimensions.
class InteractionNetwork : public torch::nn::Module {
 public:
  // `maps`: how many each layer has; one layer at least.
  InteractionNetwork(std::int64_t fields, const std::vector<std::uint32_t>& maps);
  // vectors: batch x fields x dim. Answers batch x outputs().
  [[nodiscard]] torch::Tensor forward(const torch::Tensor& vectors);
  [[nodiscard]] std::int64_t outputs() const;

 private:
  std::vector<torch::Tensor> weights_;  // of each layer: maps x (maps before * fields)
};

// Lian, Zhou, Zhang, Chen, Xie and Sun, "xDeepFM: combining explicit and implicit
// feature interactions for recommender systems", KDD 2018, arXiv 1803.05170:
// first-order weights, the compressed interaction network over the fields'
// embeddings, and a network over the embeddings and the dense features, added up.
class XDeepFm final : public Model {
 public:
  XDeepFm(const TrainerConfig& config, const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x (1 + embedding_dim), as DeepFm's
  torch::nn::Linear dense_ = nullptr;
  std::shared_ptr<InteractionNetwork> interactions_;
  torch::nn::Linear of_interactions_ = nullptr;
  std::shared_ptr<LayerStack> deep_;
};

// Naumov et al., "Deep learning recommendation model for personalization and
// recommendation systems", 2019, arXiv 1906.00091: a bottom network makes one more
// vector of embedding_dim of the dense features; a top network sees that vector
// and the inner products of all pairs of it and the fields' embeddings.
class Dlrm final : public Model {
 public:
  Dlrm(const TrainerConfig& config, const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  std::shared_ptr<LayerStack> bottom_;
  torch::Tensor table_;  // id_rows x embedding_dim
  std::shared_ptr<LayerStack> top_;
};

// A layer stack over the dense features, with the embeddings of the ids (where
// the data has any) beside them.
class Mlp final : public Model {
 public:
  Mlp(const TrainerConfig& config, const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x embedding_dim; undefined without ids
  std::shared_ptr<LayerStack> layers_;
};

// He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR
// 2016, small: three stages of two blocks with 16, 32 and 64 channels. Groups
// are normalised instead of batches (Wu and He, ECCV 2018), so that a sample's
// gradient does not depend on who computes which others.
class ResNet final : public Model {
 public:
  explicit ResNet(const data::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const TensorBatch& batch) override;

 private:
  struct Block : torch::nn::Module {
    Block(std::int64_t in, std::int64_t out, std::int64_t stride);
    torch::Tensor forward(const torch::Tensor& x);
    torch::nn::Conv2d conv1 = nullptr, conv2 = nullptr, shortcut = nullptr;
    torch::nn::GroupNorm norm1 = nullptr, norm2 = nullptr;
  };
  std::vector<std::int64_t> image_;  // -1, channels, height, width
  torch::nn::Conv2d stem_ = nullptr;
  torch::nn::GroupNorm norm_ = nullptr;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::Linear head_ = nullptr;
};

}  // namespace antdt::trainer
