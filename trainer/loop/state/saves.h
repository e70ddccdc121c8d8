// What was written beside the steps, on its way back to the training thread.
#pragma once

#include <mutex>
#include <optional>

#include "core/wire/training_messages.h"

namespace antdt::trainer {

// Put in by the writer's thread, taken out by the training thread. One at a time.
class Saves {
 public:
  void put(wire::CheckpointWritten written);
  [[nodiscard]] std::optional<wire::CheckpointWritten> take();

 private:
  std::mutex mutex_;
  std::optional<wire::CheckpointWritten> written_;
};

}  // namespace antdt::trainer
