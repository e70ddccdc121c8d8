// Plans that fit the memory of different devices.
#pragma once

#include <cstdint>
#include <map>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "ctl/control/plan.h"

namespace antdt::ctl {

// The largest micro-batch of each worker, in samples. A worker that is not listed, or has 0, takes
// any size.
using MemoryLimits = std::map<WorkerId, std::uint32_t>;

// The plan with micro-batches that are too large cut into smaller ones. Parts stay as they are if
// that is possible. Otherwise they change by as little as makes them whole numbers of micro-batches
// with the same sum. An error if nothing does.
[[nodiscard]] Result<wire::Plan> within_memory(wire::Plan plan, const MemoryLimits& limits,
                                               const BatchRules& rules);

// Checks whether the job can run a plan that states its micro-batches: the sum, the multiples, the
// limits, and what [batch] adjust allows to change.
[[nodiscard]] Status check_plan(const wire::Plan& plan, const MemoryLimits& limits,
                                const BatchRules& rules);

}  // namespace antdt::ctl
