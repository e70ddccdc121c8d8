// A batch in a device's memory.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "trainer/torch/models/model.h"

namespace antdt::trainer {

class BatchCopy {
 public:
  explicit BatchCopy(torch::Device device) : device_(device) {}

  // Records [first, first + count) of `batch`, which is in the host's memory. The copies go through
  // pinned memory and are not waited for: what is computed from them comes after them in the queue.
  // The pinned memory is used again by the next call, before which the device must have passed what
  // was computed.
  [[nodiscard]] Batch of(const Batch& batch, std::int64_t first, std::int64_t count);

 private:
  [[nodiscard]] torch::Tensor copied(const std::string& name, const torch::Tensor& rows);

  torch::Device device_;
  std::map<std::string, torch::Tensor> pinned_;  // bytes, by column
};

}  // namespace antdt::trainer
