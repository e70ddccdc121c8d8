// What tests of LibTorch's parts share.
#pragma once

#include <torch/torch.h>

namespace antdt::trainer {

inline torch::Tensor leaf(torch::Tensor values) { return values.requires_grad_(true); }

}  // namespace antdt::trainer
