// SGD with momentum, Adagrad and Adam over flat tensors, wherever these lie. They compute what
// those of ../optimizer.h compute, up to rounding, and remember the same arrays.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"
#include "trainer/torch/optimizer.h"

namespace antdt::trainer {

class DeviceOptimizer {
 public:
  virtual ~DeviceOptimizer() = default;
  // values -= f(gradients * scale); gradients become 0. Nothing is waited for.
  void step(const torch::Tensor& values, const torch::Tensor& gradients, double scale);
  void set_rate(double factor) { factor_ = factor; }
  // The arrays that it remembers, each of as many floats as there are values.
  [[nodiscard]] std::vector<torch::Tensor>& state() { return state_; }
  [[nodiscard]] std::uint64_t& steps() { return steps_; }

 protected:
  // A part of all of these; `gradients` is scaled and may be overwritten.
  struct Part {
    torch::Tensor values, gradients;
    std::vector<torch::Tensor> state;
  };
  virtual void begin_step() {}
  virtual void update(const Part& part) = 0;

  std::vector<torch::Tensor> state_;
  std::uint64_t steps_ = 0;
  double factor_ = 1;
};

// For `size` parameters on `device`. kUsage for an optimizer of the program's own, which works in
// the host's memory.
[[nodiscard]] Result<std::unique_ptr<DeviceOptimizer>> make_device_optimizer(
    const OptimizerOptions& options, std::size_t size, torch::Device device);

}  // namespace antdt::trainer
