#include "trainer/sync/ds_sync/groups.h"

#include <algorithm>

#include "core/check.h"
#include "core/permutation.h"

namespace antdt::sync::ds_sync {
namespace {

constexpr std::uint32_t kLeastDivided = 4;  // two groups of two

// Gives those who are alone to the group before theirs, the first to the one behind it.
void let_nobody_be_alone(Groups& groups) {
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  for (std::size_t i = 0; i < groups.size() && groups.size() > 1;) {
    if (groups[i].size() > 1) {
      ++i;
      continue;
    }
    groups[i == 0 ? 1 : i - 1].push_back(groups[i].front());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

GroupSchedule::GroupSchedule(std::uint32_t members, std::uint64_t seed)
    : one_group_(members < kLeastDivided), field_(Field::order_for(members)) {
  ANTDT_CHECK(members >= 1 && members <= (1U << 31), "groups of {} members", members);
  const Permutation order(members, seed);
  rank_at_.reserve(members);
  for (std::uint32_t place = 0; place < members; ++place) {
    rank_at_.push_back(static_cast<std::uint32_t>(order(place)));
  }
}

Groups GroupSchedule::groups(Step step) const {
  if (one_group_) return one_group(members());
  const std::uint32_t order = field_.order();
  const auto slope = static_cast<std::uint32_t>(step.value % cycle());
  Groups groups(order);
  for (std::uint32_t place = 0; place < members(); ++place) {
    const std::uint32_t x = place / order;
    const std::uint32_t y = place % order;
    const std::uint32_t line = slope == order ? x : field_.minus(y, field_.times(slope, x));
    groups[line].push_back(rank_at_[place]);
  }
  let_nobody_be_alone(groups);
  for (auto& group : groups) std::ranges::sort(group);
  std::ranges::sort(groups);
  return groups;
}

}  // namespace antdt::sync::ds_sync
