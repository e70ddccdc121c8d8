// Which member reads the checkpoint with which training begins, and which one tries if that member
// cannot: preferably one on another host. Pure; for one lineage.
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
  // Training begins, and nothing is known of any member.
  void clear();
  // Chooses a reader for a new generation.
  void choose(const MemberList& members);
  [[nodiscard]] std::uint32_t rank() const { return rank_; }

  // A member reported why it cannot read the checkpoint. False if it reported that before.
  [[nodiscard]] bool hear_unreadable(const ExpectedMember& reader, const std::string& why);
  // The member ended while it read.
  void reading_failed(const ExpectedMember& reader);
  // What all members reported, if none of them can read the checkpoint; empty if some may.
  [[nodiscard]] std::optional<std::string> nobody_can(const MemberList& members) const;

 private:
  std::uint32_t rank_ = 0;
  std::map<std::string, std::uint32_t> failed_on_;  // how often reading failed, by host
  std::map<WorkerId, std::uint32_t> failed_;        // how often reading failed, by worker
  std::map<WorkerId, std::string> unreadable_;      // why a worker cannot read it
};

}  // namespace antdt::ctl::membership
