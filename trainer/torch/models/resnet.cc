#include "trainer/torch/models/models.h"

namespace antdt::trainer {
namespace {

constexpr std::int64_t kGroups = 8;
constexpr std::int64_t kBlocksPerStage = 2;
constexpr std::int64_t kStageChannels[] = {16, 32, 64};

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

torch::nn::GroupNorm normalisation(std::int64_t channels) {
  return torch::nn::GroupNorm(torch::nn::GroupNormOptions(kGroups, channels));
}

// In float32 whatever the precision: LibTorch 1 cannot normalise others with parameters in float32,
// and on a device LibTorch 2 chooses the same.
torch::Tensor normalised(torch::nn::GroupNorm& by, const torch::Tensor& x) {
  return by(x.to(torch::kFloat32));
}

}  // namespace

ResNet::Block::Block(std::int64_t in, std::int64_t out, std::int64_t stride) {
  conv1 = register_module("conv1", convolution(in, out, 3, stride));
  norm1 = register_module("norm1", normalisation(out));
  conv2 = register_module("conv2", convolution(out, out, 3, 1));
  norm2 = register_module("norm2", normalisation(out));
  if (in != out || stride != 1) {
    shortcut = register_module("shortcut", convolution(in, out, 1, stride));
  }
}

torch::Tensor ResNet::Block::forward(const torch::Tensor& x) {
  torch::Tensor y = normalised(norm1, conv1(x)).relu_();
  y = normalised(norm2, conv2(y));
  y = y + (shortcut ? shortcut(x) : x);
  return y.relu_();
}

ResNet::ResNet(const kit::DataShape& shape)
    : image_{-1, shape.channels, shape.height, shape.width} {
  std::int64_t channels = kStageChannels[0];
  stem_ = register_module("stem", convolution(shape.channels, channels, 3, 1));
  norm_ = register_module("norm", normalisation(channels));
  for (const std::int64_t out : kStageChannels) {
    for (std::int64_t i = 0; i < kBlocksPerStage; ++i) {
      const std::int64_t stride = out != channels ? 2 : 1;
      blocks_.push_back(register_module("block" + std::to_string(blocks_.size()),
                                        std::make_shared<Block>(channels, out, stride)));
      channels = out;
    }
  }
  head_ = register_module("head", torch::nn::Linear(channels, outputs_of(shape)));
}

torch::Tensor ResNet::forward(const Batch& batch) {
  torch::Tensor x = normalised(norm_, stem_(batch.dense.view(image_))).relu_();
  for (const auto& block : blocks_) x = block->forward(x);
  const torch::Tensor out = head_(x.mean({2, 3}));
  return out.size(1) == 1 ? out.squeeze(1) : out;
}

}  // namespace antdt::trainer
