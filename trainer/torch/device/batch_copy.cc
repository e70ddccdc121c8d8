#include "trainer/torch/device/batch_copy.h"

#include <cstring>

namespace antdt::trainer {

torch::Tensor BatchCopy::copied(const std::string& name, const torch::Tensor& rows) {
  if (device_.is_cpu() || rows.numel() == 0) return rows.to(device_);
  const auto bytes = static_cast<std::int64_t>(rows.nbytes());
  torch::Tensor& pinned = pinned_[name];
  if (!pinned.defined() || pinned.numel() < bytes) {
    pinned =
        torch::empty({bytes + bytes / 4}, torch::TensorOptions(torch::kUInt8).pinned_memory(true));
  }
  std::memcpy(pinned.data_ptr(), rows.data_ptr(), rows.nbytes());
  torch::Tensor there = torch::empty({bytes}, torch::TensorOptions(torch::kUInt8).device(device_));
  there.copy_(pinned.narrow(0, 0, bytes), /*non_blocking=*/true);
  return there.view(rows.scalar_type()).view(rows.sizes());
}

Batch BatchCopy::of(const Batch& batch, std::int64_t first, std::int64_t count) {
  const auto part = [&](const char* name, const torch::Tensor& of) {
    return of.defined() ? copied(name, of.narrow(0, first, count).contiguous()) : of;
  };
  Batch there;
  there.records = count;
  there.classes = batch.classes;
  for (const auto& [name, column] : batch.columns) {
    there.columns.emplace(name, part(name.c_str(), column));
  }
  const auto member = [&](const char* name, const torch::Tensor& of) {
    const auto column = there.columns.find(name);
    return column != there.columns.end() ? column->second : part(name, of);
  };
  there.dense = member("dense", batch.dense);
  there.ids = member("ids", batch.ids);
  there.labels = member("labels", batch.labels);
  there.weights = member("weights", batch.weights);
  return there;
}

}  // namespace antdt::trainer
