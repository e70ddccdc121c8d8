// Which server holds which slice, and which server decides for which worker: the same for servers
// and workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/sync_strategy.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

// kUsage if the job has no servers.
[[nodiscard]] Result<Consistency> consistency_of(SyncStrategy sync);

[[nodiscard]] constexpr std::uint32_t server_of_slice(std::uint32_t slice, std::size_t servers) {
  return slice % static_cast<std::uint32_t>(servers);
}

// How many servers decide; these are the first ones. With a barrier it is one for all, and where
// members decide, one says which of them have left.
[[nodiscard]] constexpr std::uint32_t homes_of(Consistency consistency, std::size_t servers) {
  const bool one = consistency == Consistency::kBarrier || consistency == Consistency::kSteps;
  return one ? 1 : static_cast<std::uint32_t>(servers);
}

// The server that decides for this worker.
[[nodiscard]] inline std::uint32_t home_of(Consistency consistency, WorkerId worker,
                                           std::size_t servers) {
  return worker.index % homes_of(consistency, servers);
}

}  // namespace antdt::ps
