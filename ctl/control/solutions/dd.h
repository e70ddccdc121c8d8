// AntDT-DD, for clusters of unlike devices that are the job's own, under
// all-reduce: Xiao et al., "AntDT: A Self-Adaptive Distributed Training Framework
// for Leader and Straggler Nodes", arXiv:2404.09679.
//
// A device class's time for a micro-batch of b samples, t(b), is flat at first,
// then linear, up to what its memory holds. From these curves come the
// micro-batches and accumulation counts with the shortest step under the job's
// global batch (ctl/control/batch_search.h).
//
// What is added to the paper is how the curves come about, and when not to act:
//   - Curves are measured while the job trains, by plans of the same global batch
//     whose micro-batches differ (probes): of each class the largest that can be
//     of use, a half, a quarter and an eighth of it. Where nobody says what a
//     device's memory holds, no micro-batch is larger than equal parts would be.
//   - Between measured sizes the time is interpolated, beyond the largest the line
//     goes on; not further than twice, and what was chosen is measured then.
//   - The batches change when the step is expected to become shorter by more than
//     kLeastGain, at two ticks in a row.
//   - A class's curve begins again when the speed of its workers changes
//     (ctl/monitor/monitor.h), and new members bring their class: both are probed and
//     searched again. One worker that is slower than its class is no reason to
//     act: that is ND's work.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class Dd final : public Solution {
 public:
  static constexpr double kLeastGain = 0.03;
  // Micro-batches that a size must have been measured with.
  static constexpr double kEnough = 12;

  [[nodiscard]] std::string_view name() const override { return "dd"; }
  [[nodiscard]] bool needs_curves() const override { return true; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  // Sizes that no plan of this group can have: by class, with what the group is.
  std::set<std::pair<std::string, std::uint32_t>> unreachable_;
  std::string group_;
  bool wanted_before_ = false;  // at the last tick
};

}  // namespace antdt::ctl::solutions
