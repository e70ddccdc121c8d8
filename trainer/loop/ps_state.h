// What the phases of a worker of parameter servers share.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/transport/socket.h"
#include "trainer/client/client.h"
#include "trainer/data/prefetcher.h"
#include "trainer/injected/injected.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/ps_model.h"
#include "trainer/loop/time_account.h"
#include "trainer/loop/training_state.h"
#include "trainer/ps/server.h"

namespace antdt::trainer {

// Lives as long as the worker. References, never owned.
struct PsTools {
  const Clock& clock;
  client::Client& client;
  PsModel& model;
  transport::Context& context;  // of its links to the servers
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  Injected& injected;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // SIGTERM came

  [[nodiscard]] bool wants_to_leave() const { return stop || client.leave_requested().has_value(); }
};

// Where training stands for this worker. The model is on the servers: nothing here
// has to outlive a generation.
struct PsState {
  ps::Consistency consistency = ps::Consistency::kBarrier;
  std::uint64_t staleness = 0;  // with bounded staleness: pushes
  std::uint64_t version = 0;    // as many updates as this are decided in this generation
  std::uint64_t pushes = 0;     // number of the last one in this generation
  Share share;
};

}  // namespace antdt::trainer
