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
  struct Why {
    std::string text;
    bool may_pass = false;  // it is the disk or the file server, and not what is stored there
  };
  [[nodiscard]] bool hear_unreadable(const ExpectedMember& reader, Why why);
  // The member ended while it read.
  void reading_failed(const ExpectedMember& reader);
  // What all members reported, if none of them can read the checkpoint, and whether that may pass
  // for one of them; empty if some member may be able to.
  [[nodiscard]] std::optional<Why> nobody_can(const MemberList& members) const;

 private:
  std::uint32_t rank_ = 0;
  std::map<std::string, std::uint32_t> failed_on_;  // how often reading failed, by host
  std::map<WorkerId, std::uint32_t> failed_;        // how often reading failed, by worker
  std::map<WorkerId, Why> unreadable_;              // why a worker cannot read it
};

}  // namespace antdt::ctl::membership
