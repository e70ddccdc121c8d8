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

// Why the group cannot use NCCL, naming hosts and what to do; "": it can. `encrypt`: the job wants
// its tensors encrypted between hosts, which NCCL does not do.
[[nodiscard]] std::string obstacle(const std::vector<MemberSays>& members, bool encrypt);

}  // namespace antdt::nccl
