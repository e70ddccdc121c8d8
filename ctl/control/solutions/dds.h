// Dynamic data sharding alone (Xiao et al., arXiv:2404.09679): whoever is
// faster fetches more shards. That is how the ledger hands data out in any
// case, so there is nothing to decide; it helps workers that do not wait for
// one another, and nobody under all-reduce.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class Dds final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "dds"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;
};

}  // namespace antdt::ctl::solutions
