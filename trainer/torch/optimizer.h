// SGD with momentum, Adagrad and Adam, each one pass over flat arrays.
//
// The same results as torch::optim's (dense, no amsgrad, no Nesterov); the
// division by the global weight and the clearing of the gradient are part of
// the pass, which is bound by memory speed. Loops are written to be vectorised.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::trainer {

struct OptimizerOptions {
  std::string kind = "adam";  // "sgd", "adagrad", "adam"
  double learning_rate = 1e-3;
  double momentum = 0;  // of sgd
  double weight_decay = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // values -= f(gradients * scale); gradients become 0.
  void step(std::span<float> values, std::span<float> gradients, float scale) {
    begin_step();
    update(values, gradients, 0, scale);
  }
  // The same in parts: what is not updated in a step stays as it is, with what is
  // remembered of it (torch.optim.SparseAdam's way; weight decay and momentum act on
  // what is updated alone). `first` is where the spans begin among all parameters.
  virtual void begin_step() { ++steps_; }
  virtual void update(std::span<float> values, std::span<float> gradients, std::size_t first,
                      float scale) = 0;
  // Of the learning rate that it was made with, from the next begin_step() on.
  void set_rate(double factor) { factor_ = factor; }
  // All that it remembers: as many arrays of `size` floats as it needs, there
  // from the start, and how many steps it has made. Who writes them replaces it.
  [[nodiscard]] virtual std::vector<std::span<float>> state() = 0;
  [[nodiscard]] std::uint64_t& steps() { return steps_; }

 protected:
  std::uint64_t steps_ = 0;
  double factor_ = 1;
};

// For `size` parameters. An unknown kind is an error (kUsage) that names the
// known ones.
[[nodiscard]] Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                                std::size_t size);

}  // namespace antdt::trainer
