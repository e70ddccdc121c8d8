// What members do alike, around a ring and with servers.
#pragma once

#include "core/clock.h"

namespace antdt::worker {

// Between two looks at whether the process shall end.
inline constexpr Duration kTurn = std::chrono::milliseconds(100);
// How long a batch waits for records that are on their way before it is made of
// fewer.
inline constexpr Duration kDataPatience = std::chrono::milliseconds(50);
// The exit status of a member that nobody told to leave: it may be started again.
inline constexpr int kResumable = 75;
// A worker leaves between two batches. What it waits in when it does not come there is ended so
// long after it was asked to.
inline constexpr Duration kLeaveGrace = std::chrono::seconds(2);

}  // namespace antdt::worker
