// How often an agent and a job daemon tell each other that they live.
#pragma once

#include "core/clock.h"

namespace antdt::wire {

inline constexpr Duration kHeartbeatInterval = std::chrono::seconds(1);

}  // namespace antdt::wire
