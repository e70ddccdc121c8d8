// Members in the order of their ranks. Lookup by member is fast, because every message needs it.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "ctl/membership/membership_events.h"

namespace antdt::ctl::membership {

class MemberList {
 public:
  MemberList() = default;
  explicit MemberList(std::vector<ExpectedMember> members) : all_(std::move(members)) {
    for (std::size_t rank = 0; rank < all_.size(); ++rank) ranks_[all_[rank].member] = rank;
  }

  [[nodiscard]] const std::vector<ExpectedMember>& all() const { return all_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] const ExpectedMember& at(std::size_t rank) const { return all_.at(rank); }
  [[nodiscard]] bool contains(Member member) const { return ranks_.contains(member); }
  // size() if the member is not in the list.
  [[nodiscard]] std::size_t rank_of(Member member) const {
    const auto found = ranks_.find(member);
    return found == ranks_.end() ? all_.size() : found->second;
  }
  // The attempt of the worker that is in the list; null if none is.
  [[nodiscard]] const Member* attempt_of(WorkerId worker) const {
    const auto found = ranks_.lower_bound({worker, Attempt{}});
    return found == ranks_.end() || found->first.worker != worker ? nullptr : &found->first;
  }
  [[nodiscard]] std::vector<Member> members() const {
    std::vector<Member> members;
    for (const ExpectedMember& e : all_) members.push_back(e.member);
    return members;
  }
  void erase(Member member) {
    if (!contains(member)) return;
    std::erase_if(all_, [&](const ExpectedMember& e) { return e.member == member; });
    *this = MemberList(std::move(all_));
  }

 private:
  std::vector<ExpectedMember> all_;
  std::map<Member, std::size_t> ranks_;
};

}  // namespace antdt::ctl::membership
