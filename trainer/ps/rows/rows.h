// Keys and rows of floats as the bytes of a message.
//
// Keys are 64-bit, little endian, strictly rising, so no key occurs twice, and several pushes are
// merged in one pass. Rows are one after the other in the order of the keys, as 32-bit floats,
// little endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::ps {

[[nodiscard]] std::string to_bytes(std::span<const std::uint64_t> keys);
[[nodiscard]] std::string to_bytes(std::span<const float> values);
[[nodiscard]] std::string to_bytes(std::span<const double> values);

// Errors (kCorrupt): the length is not a whole number of keys, or the keys do not rise.
[[nodiscard]] Result<std::vector<std::uint64_t>> keys_from_bytes(const std::string& bytes);
// Error (kCorrupt): there are not exactly `count` floats.
[[nodiscard]] Result<std::vector<float>> floats_from_bytes(const std::string& bytes,
                                                           std::size_t count);
[[nodiscard]] Result<std::vector<double>> doubles_from_bytes(const std::string& bytes,
                                                             std::size_t count);

}  // namespace antdt::ps
