// How workers agree on the model: `sync` of [trainer], also in messages to servers.
#pragma once

#include <cstdint>

#include "core/names.h"

namespace antdt {

enum class SyncStrategy : std::uint8_t {
  kAllReduce,  // each step applies the sum of the members' gradients
  kPsBsp,      // parameter servers: a step waits for the pushes of all workers, except for backups
  kPsSsp,      // a worker is ahead of the slowest by at most `staleness` pushes
  kPsAsp,      // no worker waits for another
};
constexpr auto names_of(SyncStrategy) { return names("allreduce", "ps-bsp", "ps-ssp", "ps-asp"); }

[[nodiscard]] constexpr bool on_servers(SyncStrategy sync) {
  return sync != SyncStrategy::kAllReduce;
}

}  // namespace antdt
