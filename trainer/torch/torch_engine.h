// A LibTorch model as an Engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/loop/engine.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// How many threads LibTorch and OpenBLAS compute with in this process.
void set_compute_threads(std::uint32_t threads);

// The model and optimizer of `config` for data of that shape. kUsage when they
// cannot be built.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_torch_engine(const TrainerConfig& config,
                                                                const data::DataShape& shape);

}  // namespace antdt::trainer
