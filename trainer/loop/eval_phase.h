// One evaluation phase of one member: no collective, only the ledger.
#pragma once

#include "core/result.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

// Evaluates what is handed out until the phase's records are all committed, or
// the generation is over or to end: what was not committed is handed out again. The prefetcher must
// have been started.
[[nodiscard]] Result<PhaseEnd> run_eval_phase(Tools& tools, std::uint32_t batch_size);

}  // namespace antdt::trainer
