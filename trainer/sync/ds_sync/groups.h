// Which members mix with which in each step of DS-Sync ("divide and shuffle": "DS-Sync: Addressing
// Network Bottlenecks with Divide-and-Shuffle Synchronization for Distributed DNN Training"). Pure.
//
// The members are points of a grid of q x q, where q is the order of a field and about the square
// root of their number N; they fill its columns one after another, in an order that the seed
// chooses. In the first step the groups are the rows of the grid, in the last one of a cycle the
// columns, and between them the lines of each slope, where coordinates are elements of the field:
//
//     step     0         1 .. q-1                        q           q+1
//     groups   rows      lines y = slope * x + height    columns     rows again
//
// Rows and columns in turn would mix as well; lines of any two slopes do (an affine plane). But with
// all slopes, no two members meet often:
//   - Any two steps that follow one another mix everything: if N = q * q, two rounds without
//     training between them make all replicas equal.
//   - Every two members are in one group at least once in each cycle of q + 1 steps, and if
//     N = q * q exactly once. So the two ends of a slow link meet in one step of q + 1. With rows
//     and columns alone they would meet in every second step, or never.
//
// If N is no such square, some columns are absent and one is incomplete, so the groups of a step
// differ in size by one, except for columns. Then mixing takes longer: of up to 90 members each
// update is in every replica after four steps at most, mostly after three. A member that would be
// alone is in the group before its own; three members or fewer are one group. So nobody is alone
// unless N = 1.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "trainer/sync/ds_sync/field.h"
#include "trainer/sync/groups.h"

namespace antdt::sync::ds_sync {

// The same for the same (members, seed) on every machine.
class GroupSchedule {
 public:
  // 1 to 2^31 members.
  GroupSchedule(std::uint32_t members, std::uint64_t seed);

  // The groups of a step, all members in them; by ascending first rank. Costs time and memory in
  // proportion to the number of members.
  [[nodiscard]] Groups groups(Step step) const;
  // In so many successive steps, every two members are in one group at least once.
  [[nodiscard]] std::uint32_t cycle() const { return one_group_ ? 1 : field_.order() + 1; }
  [[nodiscard]] std::uint32_t members() const {
    return static_cast<std::uint32_t>(rank_at_.size());
  }

 private:
  const bool one_group_;  // there are too few members to divide
  const Field field_;
  std::vector<std::uint32_t> rank_at_;  // by place in the grid, column by column
};

}  // namespace antdt::sync::ds_sync
