// What this host is: its limits, its versions, what it has for a job.
#pragma once

#include <string>

#include "core/result.h"
#include "core/wire/inspect_messages.h"

namespace antdt::antdtd {

// Reads a few files of /proc and /sys, looks for libraries, and looks at `request.files`. `root`
// replaces "/" for what is read from /proc, /sys and the libraries' directories. kUsage for too
// many files.
[[nodiscard]] Result<wire::FileHostTold> host_facts(const wire::FileHost& request,
                                                    const std::string& root = "");
[[nodiscard]] wire::FileClockTold clock_now();

}  // namespace antdt::antdtd
