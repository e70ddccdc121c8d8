// Numbers of 16 bits, for sums on the host. Pure.
#pragma once

#include <cstdint>

namespace antdt::nccl {

// bfloat16: the upper half of a float.
[[nodiscard]] float from_bfloat16(std::uint16_t bits);
[[nodiscard]] std::uint16_t to_bfloat16(float value);
// IEEE 754 binary16.
[[nodiscard]] float from_float16(std::uint16_t bits);
[[nodiscard]] std::uint16_t to_float16(float value);
// Both round to the nearest, ties to even; a NaN stays a NaN.

}  // namespace antdt::nccl
