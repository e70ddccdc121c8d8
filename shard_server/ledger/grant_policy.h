// How much a member is granted, and what it should give back.
//
// Far from the end of a phase a member gets what it wants. Near the end the grants are limited so
// that all members finish together: of T records that are not committed, a member that computes a
// part p of each global step needs p*T. Where the parts are not known, this is guided
// self-scheduling (Polychronopoulos and Kuck, IEEE Transactions on Computers C-36, 1987). Pure
// functions.
#pragma once

#include <cstdint>

namespace antdt::shard_server {

struct MemberNeed {
  std::uint64_t held = 0;          // granted and not committed
  std::uint64_t step_records = 0;  // records that it computes per global step; 0: not known
  std::uint64_t hold_records = 0;  // records that it should hold in advance; 0: not known
};
struct PhaseNeed {
  std::uint64_t ungranted = 0;
  std::uint64_t outstanding = 0;  // held by all members together
  std::uint64_t members = 1;
  std::uint64_t share_sum = 0;  // step_records of all members; 0: not known
};

// Records that a member needs until the end of the phase, in whole steps of its own. If its steps
// are not known, an equal share.
[[nodiscard]] std::uint64_t fair_need(const MemberNeed& member, const PhaseNeed& phase);

// Records to grant to a member that wants `want`.
[[nodiscard]] std::uint64_t grant_size(std::uint64_t want, const MemberNeed& member,
                                       const PhaseNeed& phase);

// Records that a member holds clearly beyond its need (by more than a step of its own), which are
// recalled when other members have none. Otherwise 0.
[[nodiscard]] std::uint64_t surplus(const MemberNeed& member, const PhaseNeed& phase);

}  // namespace antdt::shard_server
