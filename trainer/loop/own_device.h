// The device that a worker reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// The class of a processor on which this many threads compute, from /proc/cpuinfo, such as "cpu:AMD
// EPYC 7763 64-Core Processor x4"; empty if the kernel does not name it.
[[nodiscard]] std::string cpu_class(std::string_view cpuinfo, std::uint32_t threads);

// An emulated worker has the device that job.toml gives it. The memory of a processor is not
// reported in samples, because only the model knows how much a micro-batch needs.
[[nodiscard]] wire::Device own_device(const TrainerConfig& config, WorkerId worker,
                                      std::string_view cpuinfo);

}  // namespace antdt::trainer
