// Which member reads the checkpoint from which training begins, and which one
// does where that one cannot: first another host is tried, where there is one.
// Pure; of one lineage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/ids.h"
#include "ctl/membership/member_list.h"

namespace antdt::ctl::membership {

class CheckpointReader {
 public:
  // Training begins: nothing is known of any member.
  void clear();
  // Of a new generation.
  void choose(const MemberList& members);
  [[nodiscard]] std::uint32_t rank() const { return rank_; }

  // A member said why it cannot read it. False: it has said so before.
  [[nodiscard]] bool hear_unreadable(const ExpectedMember& reader, const std::string& why);
  // It ended over it.
  void reading_failed(const ExpectedMember& reader);
  // What all members said, where none of them can read it; none: some may.
  [[nodiscard]] std::optional<std::string> nobody_can(const MemberList& members) const;

 private:
  std::uint32_t rank_ = 0;
  std::map<std::string, std::uint32_t> failed_on_;  // how often, by host
  std::map<WorkerId, std::uint32_t> failed_;        // the same by worker
  std::map<WorkerId, std::string> unreadable_;      // why
};

}  // namespace antdt::ctl::membership
