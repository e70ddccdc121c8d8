// The accelerators of this machine, as an agent here would lease them.
#pragma once

#include "core/report/device_report.h"
#include "core/result.h"

namespace antdt::launcher {

// Asks `antdtd --show-devices`, a process of its own, because a failing device may block whoever
// looks at it. The error says why there is no answer.
[[nodiscard]] Result<report::HostDevices> devices_of_this_machine();

}  // namespace antdt::launcher
