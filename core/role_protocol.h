// What a role's program speaks with its agent, and what follows if one of its processes fails:
// `protocol` and `restart` of [roles.worker].
#pragma once

#include <cstdint>
#include <string_view>

#include "core/names.h"

namespace antdt {

enum class Protocol : std::uint8_t {
  kAntdt,     // that of libantdt
  kTorchrun,  // none; it finds its peers as under torchrun
  kExec,      // none
};
constexpr auto names_of(Protocol) { return names("antdt", "torchrun", "exec"); }

[[nodiscard]] constexpr bool speaks(std::string_view protocol, Protocol which) {
  return by_name<Protocol>(protocol) == which;
}

enum class Restart : std::uint8_t {
  kNever,
  kMember,  // only this process is started again
  kGang,    // all are
};
constexpr auto names_of(Restart) { return names("never", "member", "gang"); }

}  // namespace antdt
