// What a micro-batch changes before it is known whether it can be computed, and its undoing.
#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

namespace antdt::trainer {

class Rollback {
 public:
  // `gradients`: the flat gradient. `buffers`: tensors that a forward pass changes.
  Rollback(torch::Tensor gradients, std::vector<torch::Tensor> buffers)
      : gradients_(std::move(gradients)), buffers_(std::move(buffers)) {}

  // `clear`: the gradient is zero now, so that nothing needs to be kept of it. May run out of
  // memory.
  void keep(bool clear) {
    const torch::NoGradGuard no_grad;
    forget();
    kept_ = clear ? torch::Tensor() : gradients_.clone();
    kept_buffers_.clear();
    for (const torch::Tensor& buffer : buffers_) kept_buffers_.push_back(buffer.detach().clone());
    holds_ = true;
  }
  // Nothing, if keep() did not come to its end.
  void undo() {
    if (!holds_) return;
    const torch::NoGradGuard no_grad;
    kept_.defined() ? gradients_.copy_(kept_) : gradients_.zero_();
    for (std::size_t i = 0; i < kept_buffers_.size(); ++i) buffers_[i].copy_(kept_buffers_[i]);
  }
  void forget() {
    holds_ = false;
    kept_ = torch::Tensor();
    kept_buffers_.clear();
  }

 private:
  torch::Tensor gradients_;
  std::vector<torch::Tensor> buffers_;
  torch::Tensor kept_;
  std::vector<torch::Tensor> kept_buffers_;
  bool holds_ = false;
};

}  // namespace antdt::trainer
