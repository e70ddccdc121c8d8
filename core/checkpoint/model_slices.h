// The number of slices of a model on parameter servers. A slice is the unit that is placed on a
// server, copied and written. Each server has at least one, so there are never more servers than
// slices. The number is the same on workers, on servers and in every checkpoint, and must never
// change, because it decides where a row lies.
#pragma once

#include <cstdint>

namespace antdt {

inline constexpr std::uint32_t kModelSlices = 64;

}  // namespace antdt
