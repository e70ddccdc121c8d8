// Dynamic data sharding alone (Xiao et al., arXiv:2404.09679): a faster worker fetches more shards.
// The ledger hands data out in this way in any case, so there is nothing to decide. It helps
// workers that do not wait for one another; under all-reduce it has no effect.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class Dds final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "dds"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;
};

}  // namespace antdt::ctl::solutions
