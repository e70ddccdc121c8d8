// "command": a program of the user's decides. What it says comes as an input of the
// job (in::Decided) and goes through the controller from there, like what any other
// solution wishes; asked by the controller itself it has nothing to say.
// docs/own-solution.md; ctl/job/solution_lines.h has the words.
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
