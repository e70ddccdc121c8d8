// Why a way of synchronisation is recommended, and what is not known, in sentences. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/predict.h"

namespace antdt::launcher::plan {

[[nodiscard]] std::vector<std::string> reasons_for(const Measured& measured,
                                                   const std::vector<Prediction>& predictions,
                                                   std::optional<std::size_t> recommended);
[[nodiscard]] std::vector<std::string> caveats_of(const Measured& measured,
                                                  const std::vector<Prediction>& predictions);

// "ps-bsp with 2 servers"
[[nodiscard]] std::string name_of(const Prediction& prediction);
// "4.20 ms"
[[nodiscard]] std::string milliseconds(double seconds);

}  // namespace antdt::launcher::plan
