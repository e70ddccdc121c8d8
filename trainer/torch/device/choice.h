// Which device a worker computes on.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

struct DeviceChoice {
  torch::Device device = torch::kCPU;
  std::optional<torch::ScalarType> precision;  // of forward passes; none: float32
  // Parameters in the host's memory and float32 throughout: the engine for a processor.
  [[nodiscard]] bool is_plain() const { return device.is_cpu() && !precision; }
};

// Pure. `found`: how many CUDA devices this process sees; of several, workers take them in turn by
// their ids, and an agent that leases devices shows each worker its own alone. kUsage: there is
// none and `trainer.device` wants one, or the job has what works on a processor only.
[[nodiscard]] Result<DeviceChoice> choose_device(const TrainerConfig& config, WorkerId worker,
                                                 std::uint32_t found);
// How many this process sees; 0 too where LibTorch has no CUDA.
[[nodiscard]] std::uint32_t cuda_devices();
// The class of a device, "cuda:NVIDIA H100 80GB HBM3"; empty for a processor. The driver is asked.
[[nodiscard]] std::string device_class(const DeviceChoice& choice);

}  // namespace antdt::trainer
