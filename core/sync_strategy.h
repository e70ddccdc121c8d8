// How workers agree on the model: `sync` of [trainer], and of what servers are told.
#pragma once

#include <cstdint>

#include "core/names.h"

namespace antdt {

enum class SyncStrategy : std::uint8_t {
  kAllReduce,  // the sum of the members' gradients, each step
  kPsBsp,      // parameter servers: a step waits for the pushes of all workers (but for backups)
  kPsSsp,      // a worker is ahead of the slowest by at most `staleness` pushes
  kPsAsp,      // nobody waits for anybody
};
constexpr auto names_of(SyncStrategy) { return names("allreduce", "ps-bsp", "ps-ssp", "ps-asp"); }

[[nodiscard]] constexpr bool on_servers(SyncStrategy sync) {
  return sync != SyncStrategy::kAllReduce;
}

}  // namespace antdt
