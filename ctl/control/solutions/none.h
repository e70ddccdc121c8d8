// Makes no decision: equal parts, plain data parallelism. The other solutions are judged against
// it.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class None final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;
};

}  // namespace antdt::ctl::solutions
