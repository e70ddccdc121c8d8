// What the driver of a member is given.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "trainer/client/client.h"
#include "trainer/data/prefetcher.h"
#include "trainer/injected/injected.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/time_account.h"

namespace antdt::trainer {

// Lives as long as the worker. References, never owned.
struct Tools {
  const Clock& clock;
  client::Client& client;
  Engine& engine;
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  Injected& injected;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // SIGTERM came
};

}  // namespace antdt::trainer
