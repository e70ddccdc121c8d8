// Whether members fit together: they have the same data, and they are ready
// with the same training state. Pure; kept while one generation is formed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "ctl/membership/member_list.h"

namespace antdt::ctl::membership {

// Which data differ, on which hosts; none: all members have the same.
[[nodiscard]] std::optional<std::string> data_differ(const MemberList& members,
                                                     const std::map<Member, wire::Join>& joined);

class Agreement {
 public:
  void clear();
  void hear(Member member, const wire::Ready& ready);

  [[nodiscard]] bool has(Member member) const { return ready_.contains(member); }
  [[nodiscard]] std::size_t size() const { return ready_.size(); }
  // What the first one said, which is to be what all say.
  [[nodiscard]] const wire::Ready& state() const { return ready_.at(first_); }
  // What differs, on which hosts, when all are ready; none: they agree.
  // `compares_places`: they have to agree on how far each member was, too.
  [[nodiscard]] std::optional<std::string> difference(const MemberList& members,
                                                      bool compares_places) const;

 private:
  // Places only of the first to be ready: the others' must be the same, and are
  // as many for each of them as there are members.
  std::map<Member, wire::Ready> ready_;
  Member first_;
  std::optional<Member> places_differ_;
};

}  // namespace antdt::ctl::membership
