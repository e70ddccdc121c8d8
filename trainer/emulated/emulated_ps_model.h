// The model `emulated` on parameter servers.
#pragma once

#include <memory>

#include "trainer/emulated/pace.h"
#include "trainer/loop/ps_model.h"

namespace antdt::trainer {

// For records that are their own number; kUsage for data of another shape. Its table is that of the
// model `tally` with `parameters` rows.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_emulated_ps_model(const data::DataShape& shape,
                                                                      std::uint32_t parameters,
                                                                      Pace pace);

}  // namespace antdt::trainer
