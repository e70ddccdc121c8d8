// One evaluation phase of one member: no collective, only the ledger.
#pragma once

#include <atomic>
#include <functional>

#include "core/result.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

// References, never owned.
struct EvalTools {
  client::Client& client;
  data::Prefetcher& prefetcher;
  TimeAccount& account;
  GenerationGuard& guard;
  const std::atomic<bool>& stop;
};

// What some records give. kAborted: the generation is over.
using Evaluate = std::function<Result<wire::EvalPartial>(const data::Examples& batch)>;

// Evaluates what is handed out until the phase's records are all committed, or
// the generation is over or to end: what was not committed is handed out again. The prefetcher must
// have been started.
[[nodiscard]] Result<PhaseEnd> run_eval_phase(const EvalTools& tools, std::uint32_t batch_size,
                                              const Evaluate& evaluate);

}  // namespace antdt::trainer
