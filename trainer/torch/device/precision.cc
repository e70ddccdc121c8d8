#include "trainer/torch/device/precision.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace antdt::trainer {
namespace {

void set_autocast(torch::DeviceType device, bool on, std::optional<torch::ScalarType> type) {
#if TORCH_VERSION_MAJOR >= 2
  if (type) at::autocast::set_autocast_dtype(device, *type);
  at::autocast::set_autocast_enabled(device, on);
#else
  const bool cpu = device == torch::kCPU;
  if (type) {
    cpu ? at::autocast::set_autocast_cpu_dtype(*type) : at::autocast::set_autocast_gpu_dtype(*type);
  }
  cpu ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
#endif
}

}  // namespace

Result<std::optional<torch::ScalarType>> parse_precision(const std::string& name) {
  if (name == "fp32") return std::nullopt;
  if (name == "bf16") return torch::kBFloat16;
  if (name == "fp16") return torch::kFloat16;
  return fail(ErrorKind::kUsage, "trainer.precision '{}' is not known: use fp32, bf16 or fp16",
              name);
}

LowerPrecision::LowerPrecision(torch::DeviceType device, std::optional<torch::ScalarType> type) {
  if (!type) return;
  device_ = device;
  set_autocast(device, true, type);
}

// The cache has the parameters in the lower precision, which the next step changes.
LowerPrecision::~LowerPrecision() {
  if (!device_) return;
  at::autocast::clear_cache();
  set_autocast(*device_, false, {});
}

}  // namespace antdt::trainer
