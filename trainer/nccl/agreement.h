// Whether the members of a group use NCCL: all of them, or none. Pure. Every member gathers what
// all say, over the links that the generation's key authenticated, and so comes to the same answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/nccl/abi.h"

namespace antdt::nccl {

// What a member says about itself.
struct MemberSays {
  int version = 0;           // of its NCCL
  bool holds_state = false;  // the training state that goes on; the others would receive it
  std::string host = {};     // its name, for messages
  std::string machine = {};  // equal on the members of one host, and nowhere else
  std::string device = {};   // the PCI address
  std::string trouble = {};  // why this member cannot use NCCL; "": it can
  UniqueId id = {};          // of the group, if this is rank 0
};

inline constexpr std::size_t kSaysBytes = 1024;
using SaysBytes = std::array<std::byte, kSaysBytes>;
// Texts that do not fit are cut off at their end.
[[nodiscard]] SaysBytes encode(const MemberSays& says);
// kCorrupt if a member speaks another version of this; `bytes` are kSaysBytes of each member.
[[nodiscard]] Result<std::vector<MemberSays>> decode(std::span<const std::byte> bytes);

// Why a group cannot use NCCL.
struct Obstacle {
  std::string why = {};             // naming hosts and what to do; "": it can
  std::vector<bool> at_fault = {};  // by rank: whether the others could without it
};
// At fault is who has trouble of its own, or else who differs from most members that hold the
// training state, or from most of all members if none holds it; where as many have one as the
// other, who differs from the one of the lowest rank among them. Of members on one device the first
// keeps it, holders of the state before others. So those that train are not ended for newcomers,
// however many these are: nobody else has the state. `encrypt`: the job wants its tensors encrypted
// between hosts, which NCCL does not do.
[[nodiscard]] Obstacle obstacle(const std::vector<MemberSays>& members, bool encrypt);

}  // namespace antdt::nccl
