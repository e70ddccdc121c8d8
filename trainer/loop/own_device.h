// What a worker says of the device that it computes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// The class of a processor of which so many threads compute, from /proc/cpuinfo, such as
// "cpu:AMD EPYC 7763 64-Core Processor x4"; empty where the kernel does not name it.
[[nodiscard]] std::string cpu_class(std::string_view cpuinfo, std::uint32_t threads);

// An emulated worker has the device that job.toml gives it. A processor's memory is not
// known in samples: what a micro-batch needs is the model's secret.
[[nodiscard]] wire::Device own_device(const TrainerConfig& config, WorkerId worker,
                                      std::string_view cpuinfo);

}  // namespace antdt::trainer
