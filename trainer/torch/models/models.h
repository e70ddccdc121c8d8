// The built-in models; built_in.h finds them by name.
#pragma once

#include <vector>

#include "trainer/torch/models/model.h"

namespace antdt::trainer {

// Embeddings are first drawn from a normal distribution around 0 with this deviation.
inline constexpr double kEmbeddingDeviation = 0.01;

// The sum of one weight for each id, a linear function of the dense features, and a bias.
class LogisticRegression final : public Model {
 public:
  explicit LogisticRegression(const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;
  [[nodiscard]] bool fits_servers() const override { return true; }  // small without a table

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

// Guo, Tang, Ye, Li and He, "DeepFM: a factorization-machine based neural network for CTR
// prediction", IJCAI 2017: the sum of first-order weights, pairwise interactions of the fields'
// embeddings, and a network over the embeddings and the dense features side by side.
class DeepFm final : public Model {
 public:
  DeepFm(const kit::Settings& settings, const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x (1 + embedding_dim)
  torch::nn::Linear dense_ = nullptr;
  std::shared_ptr<LayerStack> deep_;
};

// The compressed interaction network of xDeepFM (below): layer k multiplies the maps of layer k - 1
// with the embeddings, dimension by dimension, and mixes the products into its own maps, without an
// activation; so its maps are of degree k + 1. The output of a layer is the sum of each map over
// the dimensions.
class InteractionNetwork : public torch::nn::Module {
 public:
  // `maps`: the number of maps of each layer; at least one layer.
  InteractionNetwork(std::int64_t fields, const std::vector<std::uint32_t>& maps);
  // vectors: batch x fields x dim. Returns batch x outputs().
  [[nodiscard]] torch::Tensor forward(const torch::Tensor& vectors);
  [[nodiscard]] std::int64_t outputs() const;

 private:
  std::vector<torch::Tensor> weights_;  // for each layer: maps x (maps before * fields)
};

// Lian, Zhou, Zhang, Chen, Xie and Sun, "xDeepFM: combining explicit and implicit feature
// interactions for recommender systems", KDD 2018, arXiv 1803.05170: the sum of first-order
// weights, the compressed interaction network over the fields' embeddings, and a network over the
// embeddings and the dense features.
class XDeepFm final : public Model {
 public:
  XDeepFm(const kit::Settings& settings, const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;

 private:
  torch::Tensor table_;  // id_rows x (1 + embedding_dim), like DeepFm's
  torch::nn::Linear dense_ = nullptr;
  std::shared_ptr<InteractionNetwork> interactions_;
  torch::nn::Linear of_interactions_ = nullptr;
  std::shared_ptr<LayerStack> deep_;
};

// Naumov et al., "Deep learning recommendation model for personalization and recommendation
// systems", 2019, arXiv 1906.00091: a bottom network turns the dense features into one more vector
// of embedding_dim; a top network gets that vector, and the inner products of all pairs of it and
// the fields' embeddings.
class Dlrm final : public Model {
 public:
  Dlrm(const kit::Settings& settings, const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;

 private:
  std::shared_ptr<LayerStack> bottom_;
  torch::Tensor table_;  // id_rows x embedding_dim
  std::shared_ptr<LayerStack> top_;
};

// A stack of layers over the dense features, with the embeddings of the ids (if the data has any)
// beside them.
class Mlp final : public Model {
 public:
  Mlp(const kit::Settings& settings, const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;
  [[nodiscard]] bool fits_servers() const override { return true; }  // also without a table

 private:
  torch::Tensor table_;  // id_rows x embedding_dim; undefined without ids
  std::shared_ptr<LayerStack> layers_;
};

// He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016, in a small
// version: three stages of two blocks with 16, 32 and 64 channels. Groups are normalised instead of
// batches (Wu and He, ECCV 2018), so that a sample's gradient does not depend on the other samples
// of its micro-batch.
class ResNet final : public Model {
 public:
  explicit ResNet(const kit::DataShape& shape);
  [[nodiscard]] torch::Tensor forward(const Batch& batch) override;

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
