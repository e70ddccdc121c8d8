// How far a replica of the model is, where the replicas of members differ. Pure.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"

namespace antdt::sync {

// The members of a generation do the same steps and consolidations in the same order, and none
// begins one before all have concluded the one before. So when some are lost, the versions of two
// survivors are the same or next to each other, whatever was under way.
struct ReplicaVersion {
  Step step;  // the last step that the member has concluded
  // The generation in which members made their replicas equal (consolidated them), if no step has
  // been applied since; else 0. A later generation may have other members, so of two such replicas
  // at the same step that of the later generation is ahead, and they need not be equal.
  Generation consolidated = {};

  // Whether all replicas of this version are equal.
  [[nodiscard]] bool equal() const { return consolidated != Generation{}; }
  auto operator<=>(const ReplicaVersion&) const = default;
};

// Whose replicas go on when members were lost: the indices of those with the highest version. Any
// other member is treated as if its replica were lost, too. Empty if there are none.
[[nodiscard]] inline std::vector<std::uint32_t> furthest(std::span<const ReplicaVersion> members) {
  std::vector<std::uint32_t> those;
  if (members.empty()) return those;
  const ReplicaVersion highest = std::ranges::max(members);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (members[i] == highest) those.push_back(i);
  }
  return those;
}

}  // namespace antdt::sync
