// Plans that fit the memory of unlike devices.
#pragma once

#include <cstdint>
#include <map>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "ctl/control/plan.h"

namespace antdt::ctl {

// The largest micro-batch of each worker, in samples. Who is not here, or has 0,
// takes any.
using MemoryLimits = std::map<WorkerId, std::uint32_t>;

// The plan with larger micro-batches cut into more of them. Parts stay as they are
// where that is possible; otherwise they move by as little as makes them whole
// numbers of micro-batches with the same sum. Fails where nothing does.
[[nodiscard]] Result<wire::Plan> within_memory(wire::Plan plan, const MemoryLimits& limits,
                                               const BatchRules& rules);

// Whether a plan that gives its micro-batches itself is one that the job can run:
// the sum, the multiples, the limits, and what [batch] adjust allows to change.
[[nodiscard]] Status check_plan(const wire::Plan& plan, const MemoryLimits& limits,
                                const BatchRules& rules);

}  // namespace antdt::ctl
