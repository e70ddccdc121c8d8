// The groups of a collective in which this member mixes its replica, kept from step to step.
//
// A group is made when it is first used, which connects this member to those of it with which it
// exchanges messages; later steps with the same group find it made. A strategy has few groups (in
// DS-Sync about the square root of the number of members), so none is given up before the
// generation ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::trainer {

class MemberGroups {
 public:
  // The group of these ranks of `all`: `all` itself if they are all of its members. Errors are
  // those of Collective::group(). Valid until clear().
  [[nodiscard]] Result<Collective*> of(Collective& all, const std::vector<std::uint32_t>& ranks) {
    if (ranks.size() == all.size()) return &all;
    const auto found = made_.find(ranks);
    if (found != made_.end()) return found->second.get();
    ANTDT_TRY(auto group, all.group(ranks));
    return made_.emplace(ranks, std::move(group)).first->second.get();
  }
  // Before the collective of these groups is destroyed.
  void clear() { made_.clear(); }

 private:
  std::map<std::vector<std::uint32_t>, std::unique_ptr<Collective>> made_;
};

}  // namespace antdt::trainer
