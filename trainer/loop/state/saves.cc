#include "trainer/loop/state/saves.h"

#include <utility>

namespace antdt::trainer {

void Saves::put(wire::CheckpointWritten written) {
  const std::lock_guard lock(mutex_);
  written_ = std::move(written);
}

std::optional<wire::CheckpointWritten> Saves::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(written_, std::nullopt);
}

}  // namespace antdt::trainer
