#include "trainer/torch/parameters.h"

#include <algorithm>
#include <cstring>

#include "core/os/huge_pages.h"

namespace antdt::trainer {
namespace {

constexpr std::size_t kLineFloats = 16;

std::size_t rounded_up(std::size_t count) {
  return (count + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// In huge pages: a process that writes a checkpoint is forked with them.
torch::Tensor zeros_in_huge_pages(std::size_t count) {
  if (count == 0) return torch::zeros({0});
  const std::size_t bytes = count * sizeof(float);
  void* const at = HugePages::of_process().allocate(bytes);
  std::memset(at, 0, bytes);
  return torch::from_blob(
      at, {static_cast<std::int64_t>(count)},
      [bytes](void* memory) { HugePages::of_process().deallocate(memory, bytes); },
      torch::kFloat32);
}

}  // namespace

FlatParameters::FlatParameters(std::vector<std::pair<std::string, torch::Tensor>> in_order_of_use) {
  std::reverse(in_order_of_use.begin(), in_order_of_use.end());
  std::size_t total = 0;
  for (auto& [name, parameter] : in_order_of_use) {
    const auto count = static_cast<std::size_t>(parameter.numel());
    entries_.push_back({name, parameter, total, count});
    total += rounded_up(count);
  }
  values_ = zeros_in_huge_pages(total);
  gradients_ = zeros_in_huge_pages(total);
  const torch::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    const auto view = [&](const torch::Tensor& flat) {
      return flat
          .narrow(0, static_cast<std::int64_t>(entry.first), static_cast<std::int64_t>(entry.count))
          .view(entry.parameter.sizes());
    };
    const torch::Tensor value = view(values_);
    value.copy_(entry.parameter);
    entry.parameter.set_data(value);
    entry.parameter.mutable_grad() = view(gradients_);
  }
}

}  // namespace antdt::trainer
