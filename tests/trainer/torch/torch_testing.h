// Shared by the tests of LibTorch's parts.
#pragma once

#include <torch/torch.h>

namespace antdt::trainer {

inline torch::Tensor leaf(torch::Tensor values) { return values.requires_grad_(true); }

}  // namespace antdt::trainer
