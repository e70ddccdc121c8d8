#include "ctl/lifecycle/state/ending.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {
namespace {

// How long the bytes of the last checkpoint may pause after the grace of a stop is over.
constexpr Duration kLastCheckpointPatience = std::chrono::seconds(10);
// How long to wait for exits after all processes were sent SIGKILL.
constexpr Duration kKillDeadline = std::chrono::seconds(5);

}  // namespace

void Ending::await_checkpoint(Duration grace, MonoTime now) {
  stage_ = Stage::kCheckpointing;
  deadline_ = now + grace;
}

void Ending::checkpoint_moved(MonoTime now) {
  if (awaits_checkpoint()) deadline_ = std::max(deadline_, now + kLastCheckpointPatience);
}

void Ending::checkpoint_stored(MonoTime now) {
  stage_ = Stage::kLeaving;
  deadline_ = std::max(deadline_, now + kKillDeadline);
}

void Ending::everybody_leaves(Duration grace, MonoTime now) {
  if (stage_ != Stage::kKilled) stage_ = Stage::kLeaving;
  deadline_ = now + grace + kKillDeadline;
}

bool Ending::kill() { return std::exchange(stage_, Stage::kKilled) != Stage::kKilled; }

}  // namespace antdt::ctl
