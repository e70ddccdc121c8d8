#include "trainer/torch/device/device_optimizer.h"

#include <algorithm>
#include <cmath>

namespace antdt::trainer {
namespace {

// Temporaries of an update are that many floats, whatever the size of the model.
constexpr std::int64_t kPart = std::int64_t{1} << 24;

class Sgd final : public DeviceOptimizer {
 public:
  Sgd(const OptimizerOptions& options, const torch::Tensor& zeros) : options_(options) {
    if (options.momentum != 0) state_.push_back(zeros.clone());
  }
  void update(const Part& part) override {
    const double lr = options_.learning_rate * factor_;
    if (options_.weight_decay != 0) part.gradients.add_(part.values, options_.weight_decay);
    if (part.state.empty()) return void(part.values.add_(part.gradients, -lr));
    part.state[0].mul_(options_.momentum).add_(part.gradients);
    part.values.add_(part.state[0], -lr);
  }

 private:
  OptimizerOptions options_;
};

class Adagrad final : public DeviceOptimizer {
 public:
  Adagrad(const OptimizerOptions& options, const torch::Tensor& zeros) : options_(options) {
    state_.push_back(zeros.clone());
  }
  void update(const Part& part) override {
    constexpr double kEpsilon = 1e-10;
    const torch::Tensor& g = part.gradients;
    if (options_.weight_decay != 0) g.add_(part.values, options_.weight_decay);
    part.state[0].addcmul_(g, g);
    part.values.addcdiv_(g, part.state[0].sqrt().add_(kEpsilon), -options_.learning_rate * factor_);
  }

 private:
  OptimizerOptions options_;
};

class Adam final : public DeviceOptimizer {
 public:
  Adam(const OptimizerOptions& options, const torch::Tensor& zeros) : options_(options) {
    state_ = {zeros.clone(), zeros.clone()};
  }
  void begin_step() override {
    const auto t = static_cast<double>(steps_);
    rate_ = options_.learning_rate * factor_ / (1 - std::pow(kBeta1, t));
    root_ = 1 / std::sqrt(1 - std::pow(kBeta2, t));
  }
  void update(const Part& part) override {
    constexpr double kEpsilon = 1e-8;
    const torch::Tensor& g = part.gradients;
    if (options_.weight_decay != 0) g.add_(part.values, options_.weight_decay);
    part.state[0].mul_(kBeta1).add_(g, 1 - kBeta1);
    part.state[1].mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
    part.values.addcdiv_(part.state[0], part.state[1].sqrt().mul_(root_).add_(kEpsilon), -rate_);
  }

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  OptimizerOptions options_;
  double rate_ = 0, root_ = 1;  // corrections of moments that began with zero
};

}  // namespace

void DeviceOptimizer::step(const torch::Tensor& values, const torch::Tensor& gradients,
                           double scale) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  begin_step();
  gradients.mul_(scale);
  for (std::int64_t first = 0; first < values.numel(); first += kPart) {
    const std::int64_t count = std::min(kPart, values.numel() - first);
    Part part{values.narrow(0, first, count), gradients.narrow(0, first, count), {}};
    for (const torch::Tensor& array : state_) part.state.push_back(array.narrow(0, first, count));
    update(part);
  }
  gradients.zero_();
}

Result<std::unique_ptr<DeviceOptimizer>> make_device_optimizer(const OptimizerOptions& options,
                                                               std::size_t size,
                                                               torch::Device device) {
  const torch::Tensor zeros = torch::zeros({static_cast<std::int64_t>(size)},
                                           torch::TensorOptions(torch::kFloat32).device(device));
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, zeros);
  if (options.kind == "adagrad") return std::make_unique<Adagrad>(options, zeros);
  if (options.kind == "adam") return std::make_unique<Adam>(options, zeros);
  return fail(
      ErrorKind::kUsage,
      "trainer.optimizer '{}' is the program's own, which works in the host's memory: with "
      "trainer.device = \"{}\" and trainer.precision other than fp32 use sgd, adagrad or adam, or "
      "write trainer.device = \"cpu\"",
      options.kind, device.is_cpu() ? "cpu" : "cuda");
}

}  // namespace antdt::trainer
