// A child process that is a copy of this one at the moment of the fork, in order to write what the
// memory held then, while this process goes on.
//
// It gives way to its parent, and ends with the thread that started it. It keeps no descriptors but
// the standard ones and the one for its reports: a connection or a listening socket that stayed
// open in it would hide the parent's end from its peers for as long as a disk holds the child up.
#pragma once

#include <sys/types.h>

#include "core/result.h"

namespace antdt {

// Whether handlers of pthread_atfork run. Without them the child may take no locks and allocate no
// memory, because another thread may have held those of the allocator.
enum class ForkHandlers { kRun, kSkip };

// The descriptor of its reports in the child.
inline constexpr int kReportsFd = 3;

// Returns the child's pid; in the child, 0. `reports` is the descriptor that becomes kReportsFd
// there, and `purpose` is for the error (kIo), after which all is as before. Pages are not joined to
// huge ones while the child lives (HugePages): whoever finds that it has ended calls mend().
[[nodiscard]] Result<pid_t> fork_copy(int reports, ForkHandlers handlers, const char* purpose);

}  // namespace antdt
