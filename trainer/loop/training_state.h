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
#include "trainer/injected/injected.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/generation_guard.h"
#include "trainer/loop/step_log.h"
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

// Where training stands for this member. It outlives generations. What belongs to
// the model (step, phase, places, sums, checkpoint) is a function of the step
// that completed last, so that members at the same step say the same of it.
struct TrainingState {
  Step step;  // the last that completed
  Share share;
  std::uint64_t checkpoint = 0;   // number of the last one written or passed
  std::vector<WorkerId> members;  // by rank, of the newest generation that was formed

  // The newest settled generation whose state this member holds whole; 0: none
  // does it hold, or the beginning.
  Generation settled;
  bool pristine = true;  // the seeded start, and nothing was done to it
  // Of the training phase that the last steps were in: its number, where the
  // members of `settled` stand in it, and the weighted loss of all its steps.
  std::uint64_t phase = 0;
  std::vector<wire::MemberPlace> places;
  double loss_sum = 0;
  double weight_sum = 0;
  StepLog log;  // of the steps of `settled`
};

// Where members stand when their generation has just settled.
[[nodiscard]] inline std::vector<wire::MemberPlace> places_at_start(
    const std::vector<WorkerId>& members) {
  std::vector<wire::MemberPlace> places;
  for (const WorkerId worker : members) places.push_back({worker, 0});
  return places;
}

// How a phase ended for this member.
enum class PhaseEnd {
  kDone,   // every record is in
  kOver,   // the generation is over: join the next one
  kLeave,  // this member was asked to leave and may go now
};

}  // namespace antdt::trainer
