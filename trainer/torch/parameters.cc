#include "trainer/torch/parameters.h"

#include <algorithm>
#include <cstring>

#include "core/os/forks/huge_pages.h"

namespace antdt::trainer {
namespace {

constexpr std::size_t kLineFloats = 16;

std::size_t rounded_up(std::size_t count) {
  return (count + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// In huge pages, because a process that writes a checkpoint is forked with them.
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

torch::Tensor flat_zeros(std::size_t count, torch::Device device) {
  if (device.is_cpu()) return zeros_in_huge_pages(count);
  return torch::zeros({static_cast<std::int64_t>(count)},
                      torch::TensorOptions(torch::kFloat32).device(device));
}

Result<std::vector<std::pair<std::string, torch::Tensor>>> FlatParameters::trained_of(
    const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> trained;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    if (item.value().scalar_type() != torch::kFloat32) {
      return fail(ErrorKind::kUsage, "the model's parameter '{}' is {}: it must be float32",
                  item.key(), torch::toString(item.value().scalar_type()));
    }
    trained.emplace_back(item.key(), item.value());
  }
  if (trained.empty()) {
    return fail(ErrorKind::kUsage,
                "the model has no parameter to train: register what it is made of with "
                "register_module and register_parameter");
  }
  return trained;
}

std::size_t FlatParameters::floats_of(
    const std::vector<std::pair<std::string, torch::Tensor>>& parameters) {
  std::size_t total = 0;
  for (const auto& [name, parameter] : parameters) {
    total += rounded_up(static_cast<std::size_t>(parameter.numel()));
  }
  return total;
}

FlatParameters::FlatParameters(std::vector<std::pair<std::string, torch::Tensor>> in_order_of_use,
                               torch::Device device) {
  std::reverse(in_order_of_use.begin(), in_order_of_use.end());
  std::size_t total = 0;
  for (auto& [name, parameter] : in_order_of_use) {
    const auto count = static_cast<std::size_t>(parameter.numel());
    entries_.push_back({name, parameter, total, count});
    total += rounded_up(count);
  }
  values_ = flat_zeros(total, device);
  gradients_ = flat_zeros(total, device);
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

std::optional<std::size_t> FlatParameters::place_of(const std::string& name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  if (found == entries_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - entries_.begin());
}

}  // namespace antdt::trainer
