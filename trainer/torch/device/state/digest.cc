#include "trainer/torch/device/state/digest.h"

#include <algorithm>
#include <cstring>

#include "core/permutation.h"

namespace antdt::trainer {
namespace {

constexpr std::int64_t kBlock = 16'384;
constexpr std::int64_t kPiece = 64 * kBlock;  // words at once: each becomes one of 64 bits

}  // namespace

Digest::Digest(torch::Device device) {
  std::vector<std::int64_t> factors(kBlock);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = static_cast<std::int64_t>(mix64(i + 1) | 1U);
  }
  factors_ = torch::tensor(factors, torch::kInt64).to(device);
}

std::vector<std::uint64_t> Digest::of(const std::vector<torch::Tensor>& arrays) const {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> sums;
  for (const torch::Tensor& array : arrays) add(array.view(torch::kInt32), sums);
  const torch::Tensor all = torch::cat(sums).cpu();
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(all.numel()));
  std::memcpy(numbers.data(), all.data_ptr<std::int64_t>(), numbers.size() * sizeof(numbers[0]));
  return numbers;
}

void Digest::add(const torch::Tensor& words, std::vector<torch::Tensor>& sums) const {
  for (std::int64_t at = 0; at < words.numel();) {
    const std::int64_t left = words.numel() - at;
    // Whole blocks, as many as a piece has, or what is left of the last one.
    const std::int64_t count = left < kBlock ? left : std::min(left / kBlock * kBlock, kPiece);
    const std::int64_t width = std::min(count, kBlock);
    const torch::Tensor wide = words.narrow(0, at, count).to(torch::kInt64).view({-1, width});
    sums.push_back(wide.mul_(factors_.narrow(0, 0, width)).sum(1));
    at += count;
  }
}

}  // namespace antdt::trainer
