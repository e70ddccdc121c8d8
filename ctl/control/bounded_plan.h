// The plan that the controller makes of parts: within the domains' parts and the devices' memory.
// Who wishes other parts compares that plan, and not the parts. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "ctl/control/domain_parts.h"
#include "ctl/control/memory_limits.h"
#include "ctl/control/plan.h"

namespace antdt::ctl {

struct PlanBounds {
  DomainRests rests;
  MemoryLimits memory;
};

// `weights` of `workers`, by index; they count within each domain.
[[nodiscard]] Result<wire::Plan> bounded_plan(PlanVersion version,
                                              const std::vector<WorkerId>& workers,
                                              std::vector<double> weights, const BatchRules& rules,
                                              const PlanBounds& bounds);

}  // namespace antdt::ctl
