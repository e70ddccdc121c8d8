// Results of checkpoints, on their way back to the training thread.
#pragma once

#include <mutex>
#include <optional>

#include "core/wire/training_messages.h"

namespace antdt::trainer {

// The writer's thread puts a result in, and the training thread takes it out. One at a time.
class Saves {
 public:
  void put(wire::CheckpointWritten written);
  [[nodiscard]] std::optional<wire::CheckpointWritten> take();

 private:
  std::mutex mutex_;
  std::optional<wire::CheckpointWritten> written_;
};

}  // namespace antdt::trainer
