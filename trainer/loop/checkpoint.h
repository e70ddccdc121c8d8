// Writing the training state aside, for the job daemon to complete.
#pragma once

#include <string>

#include "core/ids.h"
#include "core/wire/messages.h"
#include "trainer/loop/engine.h"

namespace antdt::trainer {

// Writes the state into RUN_DIR/checkpoints/.tmp-<step>-<worker>.<attempt>, synced,
// and answers what there is, without number, phase and places. A failure is in
// its `error`, and nothing is left behind. The directory is the member's own: one
// that was replaced and does not know it yet writes beside its successor.
[[nodiscard]] wire::CheckpointWritten write_checkpoint(const Engine& engine,
                                                       const std::string& run_dir, Step step,
                                                       antdt::Member member);

}  // namespace antdt::trainer
