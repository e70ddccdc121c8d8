// State shared by the machine of a worker of parameter servers and the machines of its phases.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ids.h"
#include "trainer/ps/server.h"
#include "trainer/worker/member/inputs.h"
#include "trainer/worker/servers/shadow_chain.h"
#include "trainer/worker/training_state.h"

namespace antdt::worker::ps_worker {

// The model is on the servers, so only the plan outlives a generation.
struct PsState {
  WorkerId self;
  Heard heard;
  ps::Consistency consistency = ps::Consistency::kBarrier;
  std::uint64_t staleness = 0;  // with bounded staleness, in pushes
  std::uint64_t version = 0;    // at least this many updates are decided in this generation
  std::uint64_t pushes = 0;     // number of the last push in this generation
  Share share;
  Share planned;                      // share by the newest plan
  std::optional<ShadowChain> shadow;  // with a replica of the dense parameters

  [[nodiscard]] bool barrier() const { return consistency == ps::Consistency::kBarrier; }
};

}  // namespace antdt::worker::ps_worker
