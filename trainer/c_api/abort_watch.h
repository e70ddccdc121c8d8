// A process that is about to abort, as Gloo makes one that receives more bytes than it waits for,
// stays for a moment: its tracer is told through a pipe, and says which collective it was in, by
// which the job finds the rank that called another one.
//
// A handler of a signal has no object, so what it needs is global, here alone.
#pragma once

#include "core/clock.h"

namespace antdt::capi {

// From now on a SIGABRT of this process (not of its children) writes a byte to `fd`, and the
// process ends `stay` later, as it would have without this. Of several calls the last one counts.
void watch_aborts(int fd, Duration stay);
// It ends at once again.
void forget_aborts();

}  // namespace antdt::capi
