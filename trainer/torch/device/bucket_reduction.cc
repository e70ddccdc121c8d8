#include "trainer/torch/device/bucket_reduction.h"

#include "trainer/collective/device.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

torch::Tensor part(const torch::Tensor& of, GradientRange range) {
  return of.narrow(0, static_cast<std::int64_t>(range.first),
                   static_cast<std::int64_t>(range.count));
}

}  // namespace

DeviceReduction::DeviceReduction(torch::Tensor gradients)
    : gradients_(std::move(gradients)),
      compute_(gradients_.device(), Queue::Kind::kCompute),
      beside_(gradients_.device(), Queue::Kind::kBeside),
      returned_(gradients_.device()) {}

void DeviceReduction::begin(Collective& collective, std::size_t buckets) {
  alone_ = collective.size() == 1;
  on_device_ = collective.device();
  while (stages_.size() < buckets) {
    const torch::Device device = gradients_.device();
    stages_.push_back(std::make_unique<Stage>(Stage{Mark(device), Mark(device), {}}));
  }
  for (const auto& stage : stages_) stage->under_way = false;
}

// Nothing here waits, so backward goes on.
void DeviceReduction::completed(std::size_t bucket, GradientRange range) {
  if (!alone_) send_off(*stages_[bucket], range);
}

void DeviceReduction::send_off(Stage& stage, GradientRange range) {
  stage.computed.set(compute_);
  stage.computed.hold_up(beside_);
  stage.under_way = true;
  if (on_device_ != nullptr) return;
  const torch::NoGradGuard no_grad;
  if (!stage.host.defined()) {
    stage.host =
        torch::empty({static_cast<std::int64_t>(range.count)},
                     torch::TensorOptions(torch::kFloat32).pinned_memory(!gradients_.is_cpu()));
  }
  const InQueue in(beside_);
  stage.host.copy_(part(gradients_, range), /*non_blocking=*/true);
  stage.copied.set(beside_);
}

std::size_t DeviceReduction::staging_bytes() const {
  std::size_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->host.defined() ? stage->host.nbytes() : 0;
  return bytes;
}

Status DeviceReduction::reduce(Collective& collective, std::size_t bucket, GradientRange range) {
  if (alone_) return {};
  return or_thrown(
      ErrorKind::kInternal, "a part of the gradient cannot be summed", [&]() -> Status {
        Stage& stage = *stages_[bucket];
        if (!stage.under_way) send_off(stage, range);
        return on_device_ != nullptr ? sum_on_device(range) : sum_on_host(collective, stage, range);
      });
}

Status DeviceReduction::sum_on_device(GradientRange range) {
  ANTDT_RETURN_IF_ERROR(on_device_->enqueue_sum(
      {part(gradients_, range).data_ptr(), range.count, DeviceType::kFloat32}, beside_.handle()));
  returned_.set(beside_);
  return {};
}

Status DeviceReduction::sum_on_host(Collective& collective, const Stage& stage,
                                    GradientRange range) {
  stage.copied.wait();
  const torch::Tensor& staged = stage.host;
  ANTDT_RETURN_IF_ERROR(collective.allreduce_sum(std::span(staged.data_ptr<float>(), range.count)));
  const torch::NoGradGuard no_grad;
  const InQueue in(beside_);
  part(gradients_, range).copy_(staged, /*non_blocking=*/true);
  returned_.set(beside_);
  return {};
}

Status DeviceReduction::settle() {
  if (on_device_ != nullptr && !alone_) ANTDT_RETURN_IF_ERROR(on_device_->finish());
  order();
  return {};
}

}  // namespace antdt::trainer
