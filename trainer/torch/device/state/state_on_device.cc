#include "trainer/torch/device/state/state_on_device.h"

#include <utility>

#include "trainer/torch/parameters.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {

StateOnDevice::StateOnDevice(torch::Tensor values, torch::Tensor gradients,
                             DeviceOptimizer& optimizer, Buffers& buffers)
    : values_(std::move(values)),
      gradients_(std::move(gradients)),
      optimizer_(optimizer),
      buffers_(buffers),
      queue_(values_.device(), Queue::Kind::kCompute) {}

std::vector<torch::Tensor> StateOnDevice::tensors() const {
  std::vector<torch::Tensor> all{values_};
  const auto& optimizer = optimizer_.state();
  all.insert(all.end(), optimizer.begin(), optimizer.end());
  return all;
}

void StateOnDevice::copy_to_host() {
  const std::string what =
      fmt::format("the state on {} cannot be copied to the host's memory", values_.device().str());
  or_throw_saying(what, [&] {
    const torch::NoGradGuard no_grad;
    const auto there = tensors();
    while (host_.size() < there.size()) {
      host_.push_back(flat_zeros(static_cast<std::size_t>(values_.numel())));
    }
    if (same_) return;
    for (std::size_t i = 0; i < there.size(); ++i) host_[i].copy_(there[i]);
    same_ = true;
  });
}

void StateOnDevice::copy_to_device() {
  same_ = false;
  const std::string what = fmt::format("the state cannot be copied to {}", values_.device().str());
  or_throw_saying(what, [&] {
    const torch::NoGradGuard no_grad;
    const auto there = tensors();
    for (std::size_t i = 0; i < there.size(); ++i) there[i].copy_(host_.at(i));
  });
  same_ = true;
}

std::vector<StateArray> StateOnDevice::on_host() const {
  std::vector<StateArray> all;
  for (const torch::Tensor& array : host_) {
    all.push_back({all.empty() ? "parameters" : fmt::format("optimizer{}", all.size() - 1),
                   {array.data_ptr<float>(), static_cast<std::size_t>(array.numel())}});
  }
  return all;
}

std::vector<DeviceBytes> StateOnDevice::arrays() {
  std::vector<DeviceBytes> all;
  for (const torch::Tensor& array : tensors()) all.push_back({array.data_ptr(), array.nbytes()});
  return all;
}

std::vector<std::span<std::byte>> StateOnDevice::rest() {
  std::vector<std::span<std::byte>> parts{
      std::as_writable_bytes(std::span(&optimizer_.steps(), 1))};
  if (!buffers_.empty()) parts.push_back(buffers_.bytes());
  return parts;
}

Result<std::vector<std::uint64_t>> StateOnDevice::digests() {
  const torch::Device device = values_.device();
  const std::string what = fmt::format("the state on {} cannot be compared", device.str());
  return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<std::vector<std::uint64_t>> {
    if (!digest_) digest_.emplace(device);
    return digest_->of(tensors());
  });
}

void StateOnDevice::replaced() {
  same_ = false;
  const std::string what =
      fmt::format("the state on {} cannot be replaced", values_.device().str());
  or_throw_saying(what, [&] {
    const torch::NoGradGuard no_grad;
    gradients_.zero_();
    buffers_.replaced();
  });
}

}  // namespace antdt::trainer
