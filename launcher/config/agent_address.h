// How a person names an agent.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt::launcher {

// The end point of an agent that a person named as "host" or "host:port", on port 7700 by default.
// kUsage for anything else.
[[nodiscard]] Result<std::string> agent_end_point(const std::string& name);

}  // namespace antdt::launcher
