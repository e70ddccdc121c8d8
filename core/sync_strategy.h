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
  kDsSync,     // members mix their parameters in groups that change with each step
  // as kPsAsp, and each worker trains a dense replica of its own, whose centre the servers hold:
  kShadowEasgd,  // a centre that exchanges move by a share of their distance
  kShadowMa,     // the mean of the replicas
  kShadowBmuf,   // a model that follows this mean
  kGaia,  // domains hold a replica each, and send one another what is significant of their updates
  kHybrid,  // as kAllReduce, and the rows of embedding tables are on parameter servers
};
constexpr auto names_of(SyncStrategy) {
  return names("allreduce", "ps-bsp", "ps-ssp", "ps-asp", "ds-sync", "shadow-easgd", "shadow-ma",
               "shadow-bmuf", "gaia", "hybrid");
}

[[nodiscard]] constexpr bool on_servers(SyncStrategy sync) {
  return sync != SyncStrategy::kAllReduce && sync != SyncStrategy::kDsSync &&
         sync != SyncStrategy::kGaia;
}
// Whether workers are members of a collective and agree on each step there.
[[nodiscard]] constexpr bool in_collective(SyncStrategy sync) {
  return !on_servers(sync) || sync == SyncStrategy::kHybrid;
}

// Whether each worker keeps a replica of the dense parameters, and exchanges it with a centre.
[[nodiscard]] constexpr bool is_shadow(SyncStrategy sync) {
  return sync == SyncStrategy::kShadowEasgd || sync == SyncStrategy::kShadowMa ||
         sync == SyncStrategy::kShadowBmuf;
}

}  // namespace antdt
