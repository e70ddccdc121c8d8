#include "trainer/sync/ds_sync/field.h"

#include <array>
#include <bit>

#include "core/check.h"

namespace antdt::sync::ds_sync {
namespace {

// By degree, the coefficients of an irreducible polynomial over {0, 1}, the constant in the lowest
// bit: x^2 + x + 1, x^3 + x + 1, ...
constexpr std::array<std::uint32_t, 11> kIrreducible{0,    0,    0b111, 0b1011, 0b10011, 0b100101,
                                                     0x43, 0x83, 0x11b, 0x211,  0x409};

bool is_prime(std::uint32_t n) {
  for (std::uint32_t d = 2; std::uint64_t{d} * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

// 0 if the order is no power of two that this file knows, or if it is 2, which is a prime.
std::uint32_t polynomial_of(std::uint32_t order) {
  if (!std::has_single_bit(order)) return 0;
  const auto degree = static_cast<std::size_t>(std::countr_zero(order));
  return degree < kIrreducible.size() ? kIrreducible[degree] : 0;
}

}  // namespace

bool Field::exists(std::uint32_t order) { return is_prime(order) || polynomial_of(order) != 0; }

std::uint32_t Field::order_for(std::uint32_t points) {
  std::uint32_t order = 2;
  while (std::uint64_t{order} * order < points || !exists(order)) ++order;
  return order;
}

Field::Field(std::uint32_t order) : order_(order), polynomial_(polynomial_of(order)) {
  ANTDT_CHECK(exists(order), "a field of {} elements", order);
}

std::uint32_t Field::minus(std::uint32_t a, std::uint32_t b) const {
  if (polynomial_ != 0) return a ^ b;
  return a >= b ? a - b : a + (order_ - b);
}

std::uint32_t Field::times(std::uint32_t a, std::uint32_t b) const {
  if (polynomial_ == 0) return static_cast<std::uint32_t>(std::uint64_t{a} * b % order_);
  std::uint32_t product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a <<= 1;
    if ((a & order_) != 0) a ^= polynomial_;
  }
  return product;
}

}  // namespace antdt::sync::ds_sync
