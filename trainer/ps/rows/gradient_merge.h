// Adds several gradients up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace antdt::ps {

// The gradient of some rows of one table: keys rise, `width` floats each.
struct Gradient {
  std::vector<std::uint64_t> keys;
  std::vector<float> values;
};

// The sum. Gradients of the same key are added in the given order, so the result is the same to the
// last bit, whoever pushed first.
[[nodiscard]] Gradient merge(std::span<const Gradient* const> parts, std::uint32_t width);

}  // namespace antdt::ps
