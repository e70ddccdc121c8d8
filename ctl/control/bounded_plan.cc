#include "ctl/control/bounded_plan.h"

#include <utility>

namespace antdt::ctl {

Result<wire::Plan> bounded_plan(PlanVersion version, const std::vector<WorkerId>& workers,
                                std::vector<double> weights, const BatchRules& rules,
                                const PlanBounds& bounds) {
  weights = by_domain(workers, std::move(weights), bounds.rests);
  ANTDT_TRY(auto plan, make_plan(version, workers, weights, rules));
  return within_memory(std::move(plan), bounds.memory, rules);
}

}  // namespace antdt::ctl
