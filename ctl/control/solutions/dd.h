// AntDT-DD, under all-reduce, for clusters of different devices that belong to the job alone: Xiao
// et al., "AntDT: A Self-Adaptive Distributed Training Framework for Leader and Straggler Nodes",
// arXiv:2404.09679.
//
// The time t(b) of a device class for a micro-batch of b samples is constant at first, then linear,
// up to what its memory holds. From these curves follow the micro-batches and accumulation counts
// with the shortest step under the job's global batch (ctl/control/batch_search.h).
//
// The paper does not say how the curves are found, and when not to act. Here:
//   - The curves are measured while the job trains, by plans of the same global batch with
//   different
//     micro-batches (probes): for each class the largest that can be useful, a half, a quarter and
//     an eighth of it. If nobody says what a device's memory holds, no micro-batch is larger than
//     those of equal parts.
//   - Between measured sizes the time is interpolated. Beyond the largest it is extrapolated along
//   the
//     line, up to twice the size, and the size that is chosen is then measured.
//   - The batches change when the step is expected to become shorter by more than kLeastGain, at
//   two
//     ticks in a row.
//   - A class's curve begins again when the speed of its workers changes (ctl/monitor/monitor.h).
//   New
//     members may bring a new class. In both cases the class is probed and the search is repeated.
//     One worker that is slower than its class is no reason to act: ND handles that case.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class Dd final : public Solution {
 public:
  static constexpr double kLeastGain = 0.03;
  // Least number of micro-batches with which a size counts as measured.
  static constexpr double kEnough = 12;

  [[nodiscard]] std::string_view name() const override { return "dd"; }
  [[nodiscard]] bool needs_curves() const override { return true; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  // Sizes that no plan of this group can have, with the class and a description of the group.
  std::set<std::pair<std::string, std::uint32_t>> unreachable_;
  std::string group_;
  bool wanted_before_ = false;  // whether a change was wanted at the last tick
};

}  // namespace antdt::ctl::solutions
