// LB-BSP: batches follow the predicted speed. Chen et al., "Semi-Dynamic Load Balancing: Efficient
// Distributed Learning in Non-Dedicated Environments", SoCC 2020. Semi-dynamic means that parts are
// fixed within an iteration and may change at its boundary; each worker's part is in proportion to
// the speed that is predicted for it.
//
// Simplified: the paper predicts with a NARX network, trained beforehand, from the speed, CPU and
// memory use of each iteration. Here the prediction is an exponential moving average of the
// worker's reports (kMemory). The paper changes the parts in every iteration; here they change
// every kEvery ticks, as soon as the last change has settled, if they differ at all: there is no
// threshold and no test against noise. This solution exists for comparison.
#pragma once

#include <map>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class LbBsp final : public Solution {
 public:
  static constexpr double kMemory = 0.6;  // weight of the earlier predictions
  static constexpr int kEvery = 3;

  [[nodiscard]] std::string_view name() const override { return "lb-bsp"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  std::map<Member, double> predicted_;  // in samples a second
  int ticks_ = 0;
};

}  // namespace antdt::ctl::solutions
