#include "core/wire/packet.h"

#include <algorithm>

namespace antdt::wire {

Result<std::uint32_t> negotiate_version(const Hello& own, const Hello& peer) {
  const std::uint32_t lowest = std::max(own.min_version, peer.min_version);
  const std::uint32_t highest = std::min(own.max_version, peer.max_version);
  if (lowest > highest || peer.min_version > peer.max_version) {
    return fail(ErrorKind::kRefused,
                "no protocol version in common: '{}' speaks {} to {}, '{}' speaks {} to {}; "
                "install the same release of AntDT on both sides",
                own.software, own.min_version, own.max_version, peer.software, peer.min_version,
                peer.max_version);
  }
  return highest;
}

Result<std::uint32_t> negotiate_version(const Hello& peer) {
  Hello own;
  own.software = "this AntDT";
  return negotiate_version(own, peer);
}

}  // namespace antdt::wire
