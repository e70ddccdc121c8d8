// A LibTorch model on a device as an Engine.
//
// The same steps, sums and state as the engine for a processor (../torch_engine.h): their
// checkpoints are alike, and members of one job may be of both kinds. A micro-batch counts as
// computed when the device has finished it, which is also when its loss is known.
#pragma once

#include <memory>

#include "trainer/torch/device/choice.h"
#include "trainer/torch/optimizer.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {

// `training.optimizer` is not used. kUsage as make_device_optimizer() and FlatParameters.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_device_engine(Training training,
                                                                 const OptimizerOptions& optimizer,
                                                                 const data::DataShape& shape,
                                                                 const DeviceChoice& choice);

}  // namespace antdt::trainer
