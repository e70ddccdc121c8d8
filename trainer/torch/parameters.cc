#include "trainer/torch/parameters.h"

#include <algorithm>

namespace antdt::trainer {
namespace {

constexpr std::size_t kLineFloats = 16;

std::size_t rounded_up(std::size_t count) {
  return (count + kLineFloats - 1) / kLineFloats * kLineFloats;
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
  values_ = torch::zeros({static_cast<std::int64_t>(total)});
  gradients_ = torch::zeros({static_cast<std::int64_t>(total)});
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
