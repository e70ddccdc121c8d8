#include "trainer/nccl/half.h"

#include <bit>
#include <cmath>

namespace antdt::nccl {

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1f) return mantissa == 0 ? sign * INFINITY : std::copysign(NAN, sign);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
}

std::uint16_t to_float16(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520.0F) return sign | 0x7c00;  // halfway between the largest number and 2^16
  int exponent = 0;
  std::frexp(size, &exponent);
  // The unit in the last place is 2^(exponent - 11), or 2^-24 for the smallest numbers. A mantissa
  // that rounding made 2^11 moves into the exponent by the addition.
  const int unit = exponent < -13 ? -24 : exponent - 11;
  const auto mantissa = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(size, -unit)));
  const int biased = unit == -24 ? 0 : unit + 24;
  return static_cast<std::uint16_t>(sign + (biased << 10) + mantissa);
}

}  // namespace antdt::nccl
