// Keys and rows of several tables, as a batch needs and changes them.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/ps/rows/gradient_merge.h"

namespace antdt::ps {

// Keys of one table, rising.
struct TableKeys {
  std::uint32_t table = 0;  // index in PsOpen
  std::vector<std::uint64_t> keys;
};

// Gradients, or values, of rows of one table.
struct TableGradient {
  std::uint32_t table = 0;
  Gradient gradient;
};

}  // namespace antdt::ps
