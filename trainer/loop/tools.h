// What the driver of a member uses.
#pragma once

#include <atomic>

#include "core/clock.h"
#include "trainer/client/client.h"
#include "trainer/data/prefetcher.h"
#include "trainer/injected/injected.h"
#include "trainer/loop/accounts/time_account.h"
#include "trainer/loop/end_of_training.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/generation_guard.h"

namespace antdt::trainer {

// Everything must live as long as the worker. These are references, not owners.
struct Tools {
  const Clock& clock;
  client::Client& client;
  Engine& engine;
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  Injected& injected;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // set by SIGTERM
  const EndOfTraining* end_of_training = nullptr;  // where a program may end the training
};

}  // namespace antdt::trainer
