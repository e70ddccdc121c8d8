// Whether members fit together: they must have the same data, and be ready with the same training
// state. Pure; kept while one generation is formed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "ctl/membership/member_list.h"

namespace antdt::ctl::membership {

// Which data differ, on which hosts; empty if all members have the same.
[[nodiscard]] std::optional<std::string> data_differ(const MemberList& members,
                                                     const std::map<Member, wire::Join>& joined);

// Whether the members compute on devices of different classes, and all of them can settle what
// their arithmetic then differs in.
[[nodiscard]] bool devices_differ(const MemberList& members,
                                  const std::map<Member, wire::Join>& joined);

class Agreement {
 public:
  void clear();
  void hear(Member member, const wire::Ready& ready);

  [[nodiscard]] bool has(Member member) const { return ready_.contains(member); }
  [[nodiscard]] std::size_t size() const { return ready_.size(); }
  // What the first member reported, with which the others must agree.
  [[nodiscard]] const wire::Ready& state() const { return ready_.at(first_); }
  // When all are ready: what differs, on which hosts; empty if they agree. `compares_places`: the
  // members must also agree on how far each of them was.
  [[nodiscard]] std::optional<std::string> difference(const MemberList& members,
                                                      bool compares_places) const;

 private:
  // Only the first report contains places, because the others must be the same, and each has as
  // many places as there are members.
  std::map<Member, wire::Ready> ready_;
  Member first_;
  std::optional<Member> places_differ_;
};

}  // namespace antdt::ctl::membership
