// Forward passes in a lower precision: LibTorch's autocast. Parameters, gradients, their sums and
// the optimizer stay in float32.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>

#include "core/result.h"

namespace antdt::trainer {

// What `trainer.precision` says; none: float32. kUsage names the known ones.
[[nodiscard]] Result<std::optional<torch::ScalarType>> parse_precision(const std::string& name);

// While it lives, operations of this thread on such a device choose the precision by their kind.
class LowerPrecision {
 public:
  LowerPrecision(torch::DeviceType device, std::optional<torch::ScalarType> type);
  ~LowerPrecision();
  LowerPrecision(const LowerPrecision&) = delete;
  LowerPrecision& operator=(const LowerPrecision&) = delete;

 private:
  std::optional<torch::DeviceType> device_;  // none: nothing to undo
};

}  // namespace antdt::trainer
