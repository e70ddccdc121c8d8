// What the phases of a worker of parameter servers share.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/transport/socket.h"
#include "trainer/client/client.h"
#include "trainer/data/prefetcher.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/injection.h"
#include "trainer/loop/ps_model.h"
#include "trainer/loop/time_account.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

// Lives as long as the worker. References, never owned.
struct PsTools {
  const Clock& clock;
  client::Client& client;
  PsModel& model;
  transport::Context& context;  // of its links to the servers
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  const Injection& injection;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // SIGTERM came

  [[nodiscard]] bool wants_to_leave() const { return stop || client.leave_requested().has_value(); }
};

// Where training stands for this worker. The model is on the servers: nothing here
// has to outlive a generation but the numbers of its pushes, which never repeat.
struct PsState {
  std::uint64_t version = 0;  // as many steps as this are decided in this generation
  std::uint64_t pushes = 0;   // number of the last
  Share share;
  std::optional<MonoTime> first_step;
};

}  // namespace antdt::trainer
