// SGD with momentum, Adagrad and Adam, each in one pass over flat arrays.
//
// The results are the same as torch::optim's (dense, without amsgrad and Nesterov). The pass
// includes the division by the global weight and the clearing of the gradient, because it is
// limited by memory speed. The loops are written to be vectorised.
#pragma once

#include <antdt/kit/parts.h>

#include <map>
#include <memory>
#include <string>

#include "core/result.h"

namespace antdt::trainer {

struct OptimizerOptions {
  std::string kind = "adam";  // "sgd", "adagrad", "adam"
  double learning_rate = 1e-3;
  double momentum = 0;  // for sgd
  double weight_decay = 0;
};

using kit::Optimizer;

// sgd, adagrad and adam, by their names.
[[nodiscard]] std::map<std::string, kit::OptimizerFactory> built_in_optimizers();

// For `size` parameters. For an unknown kind, the error (kUsage) names the known ones.
[[nodiscard]] Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                                std::size_t size);

}  // namespace antdt::trainer
