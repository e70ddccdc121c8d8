// What a micro-batch changes before it is known whether it can be computed, and its undoing.
#pragma once

#include <torch/torch.h>

#include <utility>

namespace antdt::trainer {

class Rollback {
 public:
  // `gradients`: the flat gradient. `buffers`: what a forward pass changes; undefined: nothing.
  Rollback(torch::Tensor gradients, torch::Tensor buffers)
      : gradients_(std::move(gradients)), buffers_(std::move(buffers)) {}

  // `clear`: the gradient is zero now, so that nothing needs to be kept of it. May run out of
  // memory.
  void keep(bool clear) {
    const torch::NoGradGuard no_grad;
    forget();
    kept_ = clear ? torch::Tensor() : gradients_.clone();
    if (buffers_.defined()) kept_buffers_ = buffers_.clone();
    holds_ = true;
  }
  // Nothing, if keep() did not come to its end.
  void undo() {
    if (!holds_) return;
    const torch::NoGradGuard no_grad;
    kept_.defined() ? gradients_.copy_(kept_) : gradients_.zero_();
    if (buffers_.defined()) buffers_.copy_(kept_buffers_);
  }
  void forget() {
    holds_ = false;
    kept_ = torch::Tensor();
    kept_buffers_ = torch::Tensor();
  }

 private:
  torch::Tensor gradients_, buffers_;
  torch::Tensor kept_, kept_buffers_;
  bool holds_ = false;
};

}  // namespace antdt::trainer
