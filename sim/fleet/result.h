// The result of a simulated or measured job in one line of a table, for comparison with others.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/fleet/player.h"

namespace antdt::fleet {

struct Comparison {
  std::string situation;
  std::string solution;
  std::uint32_t workers = 0;
  double job_seconds = 0;    // of training
  double ideal_seconds = 0;  // of the best possible schedule (ideal.h)
  std::optional<double> speedup_over_none;
  std::uint64_t actions = 0;  // that were applied
  std::uint64_t records_repeated = 0;
  std::uint64_t records_lost = 0;
  [[nodiscard]] double share_of_ideal() const {
    return job_seconds > 0 ? ideal_seconds / job_seconds : 0;
  }
};

[[nodiscard]] std::uint64_t applied_actions(const Played& played);
// A list of objects, with share_of_ideal; unknown values are null.
[[nodiscard]] std::string to_json(const std::vector<Comparison>& all);

}  // namespace antdt::fleet
