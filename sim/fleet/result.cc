#include "sim/fleet/result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/action_outcome.h"

namespace antdt::fleet {

std::uint64_t applied_actions(const Played& played) {
  return static_cast<std::uint64_t>(std::ranges::count(
      played.report.actions, name_of(ActionOutcome::kApplied), &ctl::ActionReport::outcome));
}

std::string to_json(const std::vector<Comparison>& all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Comparison& c : all) {
    list.push_back({{"situation", c.situation},
                    {"solution", c.solution},
                    {"workers", c.workers},
                    {"job_seconds", c.job_seconds},
                    {"ideal_seconds", c.ideal_seconds},
                    {"share_of_ideal", c.share_of_ideal()},
                    {"speedup_over_none", nullptr},
                    {"actions", c.actions},
                    {"records_repeated", c.records_repeated},
                    {"records_lost", c.records_lost}});
    if (c.speedup_over_none) list.back()["speedup_over_none"] = *c.speedup_over_none;
  }
  return list.dump(2);
}

}  // namespace antdt::fleet
