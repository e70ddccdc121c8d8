// Into how many slices a model on parameter servers is cut: what is placed on a
// server, copied and written is a slice. Each server has at least one, so there are
// never more servers. The same on workers and servers, for ever, and in every
// checkpoint: it decides where a row lies.
#pragma once

#include <cstdint>

namespace antdt {

inline constexpr std::uint32_t kModelSlices = 64;

}  // namespace antdt
