// Finite fields, in which the lines of a grid are computed (groups.h). Pure.
#pragma once

#include <cstdint>

namespace antdt::sync::ds_sync {

// The field of `order` elements, which are 0 to order - 1. The order is a prime or a power of two
// up to 1024; fields of other prime powers exist and are not here.
class Field {
 public:
  explicit Field(std::uint32_t order);

  [[nodiscard]] static bool exists(std::uint32_t order);
  // The smallest order whose square is at least `points`, which are at most 2^31.
  [[nodiscard]] static std::uint32_t order_for(std::uint32_t points);

  [[nodiscard]] std::uint32_t order() const { return order_; }
  [[nodiscard]] std::uint32_t minus(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] std::uint32_t times(std::uint32_t a, std::uint32_t b) const;

 private:
  std::uint32_t order_;
  std::uint32_t polynomial_;  // of a power of two: an irreducible one over {0, 1}; 0: a prime
};

}  // namespace antdt::sync::ds_sync
