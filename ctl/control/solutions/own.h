// "command": a user's own program decides. Its decision arrives as an input of the job
// (DecisionReceived) and goes through the controller like the wishes of any other solution. When
// the controller asks this solution directly, it has nothing to say. docs/own-solution.md describes
// it; ctl/job/solution_lines.h has the format.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class Own final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "command"; }
  [[nodiscard]] Decision decide(const ClusterView&, MonoTime) override { return {}; }
  [[nodiscard]] bool needs_curves() const override { return true; }
};

}  // namespace antdt::ctl::solutions
