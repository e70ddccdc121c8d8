// LB-BSP, batches that follow predicted speed: Chen et al., "Semi-Dynamic Load
// Balancing: Efficient Distributed Learning in Non-Dedicated Environments", SoCC
// 2020. Semi-dynamic: parts are fixed within an iteration and dealt again at its
// boundary, each worker's in proportion to the speed that is predicted for it.
//
// Simplified: the paper predicts with a NARX network that is fed with speed, CPU
// and memory use of each iteration, trained beforehand; here it is an exponential
// moving average of what the worker's reports say (kMemory). The paper deals every
// iteration anew; here a deal every kEvery ticks, as soon as the last one has
// settled, whenever it moves anything at all: there is no threshold and no test
// against noise. That is what it is here for: to compare with.
#pragma once

#include <map>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class LbBsp final : public Solution {
 public:
  static constexpr double kMemory = 0.6;  // weight of what was predicted before
  static constexpr int kEvery = 3;

  [[nodiscard]] std::string_view name() const override { return "lb-bsp"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  std::map<Member, double> predicted_;  // samples a second
  int ticks_ = 0;
};

}  // namespace antdt::ctl::solutions
