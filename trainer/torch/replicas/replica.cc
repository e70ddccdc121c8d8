#include "trainer/torch/replicas/replica.h"

#include <algorithm>

namespace antdt::trainer {
namespace {

std::span<float> floats_in(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

Status Replica::mix(Collective& group, Arrays arrays, Buffers& buffers) {
  if (arrays_.empty()) {
    for (const std::span<float> array : arrays) arrays_.push_back(flat_zeros(array.size()));
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(arrays[i], floats_in(arrays_[i]).begin());
  }
  buffers_ = buffers.values();
  mixed_ = true;
  for (const std::span<float> array : arrays) {
    ANTDT_RETURN_IF_ERROR(group.allreduce_mean(array));
  }
  if (buffers_.empty()) return {};
  std::vector<double> mean = buffers_;
  ANTDT_RETURN_IF_ERROR(group.allreduce_mean(mean));
  buffers.replace(mean);
  return {};
}

void Replica::restore(Arrays arrays, Buffers& buffers) {
  if (!mixed_) return;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(floats_in(arrays_[i]), arrays[i].begin());
  }
  buffers.replace(buffers_);
  mixed_ = false;
}

Status Replica::consolidate(Collective& holders, Arrays arrays, Buffers& buffers) {
  std::vector<torch::Tensor> means;
  for (const std::span<float> array : arrays) {
    means.push_back(flat_zeros(array.size()));
    std::ranges::copy(array, floats_in(means.back()).begin());
    ANTDT_RETURN_IF_ERROR(holders.allreduce_mean(floats_in(means.back())));
  }
  std::vector<double> mean = buffers.values();
  if (!mean.empty()) ANTDT_RETURN_IF_ERROR(holders.allreduce_mean(mean));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(floats_in(means[i]), arrays[i].begin());
  }
  buffers.replace(mean);
  return {};
}

}  // namespace antdt::trainer
