// The model `emulated`, held by every worker and summed by the all-reduce.
#pragma once

#include <memory>

#include "trainer/emulated/pace.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

// For records that are their own number; kUsage for data of another shape. save() writes the same
// as the model `tally` with `parameters` counters.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_emulated_engine(const data::DataShape& shape,
                                                                   std::uint32_t parameters,
                                                                   Pace pace);

}  // namespace antdt::trainer
