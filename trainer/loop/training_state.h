// What a member's phases share: its tools, and where training stands.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "trainer/client/client.h"
#include "trainer/collective/collective.h"
#include "trainer/data/prefetcher.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/injection.h"
#include "trainer/loop/time_account.h"

namespace antdt::trainer {

// Lives as long as the worker. References, never owned.
struct Tools {
  const Clock& clock;
  client::Client& client;
  Engine& engine;
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  const Injection& injection;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;  // SIGTERM came
};

// How much this member computes in a step, by the plan in force.
struct Share {
  PlanVersion version;
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 1;
  [[nodiscard]] std::uint64_t samples() const { return std::uint64_t{micro_batch} * accumulation; }
};
// The entry of `worker`; one that the plan leaves out computes nothing.
[[nodiscard]] inline Share share_of(const wire::Plan& plan, WorkerId worker) {
  for (const wire::PlanEntry& entry : plan.entries) {
    if (entry.worker == worker) return {plan.version, entry.micro_batch, entry.accumulation};
  }
  return {plan.version, 0, 1};
}

struct TrainingState {
  Step step;  // the last that completed
  Share share;
  std::uint64_t checkpoint = 0;   // number of the last one written or passed
  std::vector<WorkerId> members;  // by rank
  std::optional<MonoTime> first_step;
};

// How a phase ended for this member.
enum class PhaseEnd {
  kDone,   // every record is in
  kOver,   // the generation is over: wait for the next orders
  kLeave,  // this member was asked to leave and may go now
};

}  // namespace antdt::trainer
