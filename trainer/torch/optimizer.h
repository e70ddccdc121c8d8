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

// An optimizer that can train one of several replicas (docs/synchronisation). Each is updated by
// the gradient of its own records, times such a factor that the mean over all members is the
// gradient of the records of all. The noise of such a gradient is greater by the root of the number
// of members, which matters to an optimizer whose steps depend on the noise. Members average its
// state() with their parameters in each step.
class ReplicaOptimizer : public Optimizer {
 public:
  // From the next begin_step() on, gradients are those of one of so many members. 1, as at first:
  // those of all records.
  void set_members(std::uint32_t members) { members_ = members; }

 protected:
  std::uint32_t members_ = 1;
};

// sgd, adagrad and adam, by their names.
[[nodiscard]] std::map<std::string, kit::OptimizerFactory> built_in_optimizers();

// For `size` parameters. For an unknown kind, the error (kUsage) names the known ones.
[[nodiscard]] Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                                std::size_t size);

}  // namespace antdt::trainer
