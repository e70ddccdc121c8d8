// The groups in which the members of a collective mix their replicas in a round.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace antdt::sync {

// Members are named by their ranks, which ascend in each group. No member is in two groups.
using Groups = std::vector<std::vector<std::uint32_t>>;

[[nodiscard]] inline Groups one_group(std::uint32_t members) {
  Groups all(1, std::vector<std::uint32_t>(members));
  std::iota(all[0].begin(), all[0].end(), 0U);
  return all;
}

}  // namespace antdt::sync
