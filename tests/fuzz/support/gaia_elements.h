// The range of elements that Gaia's messages of the fuzzer and of its seeds are about.
#pragma once

#include <cstdint>

namespace antdt::fuzz {

inline constexpr std::uint64_t kGaiaFirst = 7;
inline constexpr std::uint64_t kGaiaElements = 300;  // a dense message fits the fuzzer's inputs

}  // namespace antdt::fuzz
