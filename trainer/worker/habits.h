// Constants that members of a collective and workers of servers share.
#pragma once

#include "core/clock.h"

namespace antdt::worker {

// Interval between two checks whether the process must end.
inline constexpr Duration kTurn = std::chrono::milliseconds(100);
// How long a batch waits for records that are on their way before it is made of fewer.
inline constexpr Duration kDataPatience = std::chrono::milliseconds(50);
// The exit status of a member that nobody asked to leave: it may be started again.
inline constexpr int kResumable = 75;
// A worker leaves between two batches. If it does not get there, what it waits in is ended this
// long after it was asked to leave.
inline constexpr Duration kLeaveGrace = std::chrono::seconds(2);

}  // namespace antdt::worker
