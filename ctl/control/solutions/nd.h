// AntDT-ND, for clusters shared with other work, under all-reduce: Xiao et
// al., "AntDT: A Self-Adaptive Distributed Training Framework for Leader and
// Straggler Nodes", arXiv:2404.09679. AdjustBatch: within a constant global
// batch each worker gets a part in proportion to its speed over the transient
// window. KillRestart: a persistent straggler is started again elsewhere where
// that pays (ctl/control/solutions/restart.h); its batch has moved before that.
// BackupWorkers, under sync = "ps-bsp": more of them while transient stragglers
// are there most of the time (ctl/control/solutions/backup_workers.h).
//
// What is added to the paper is when not to act. A change is wanted when
//   - every worker has been measured since the last plan, and the speeds that
//     matter are not just changing;
//   - the step is expected to become shorter by more than kLeastGain, with what all
//     wait for anyway (the sum, servers) in it;
//   - that gain is more than kErrors standard errors of what the slowest worker's
//     speed makes of a step, so that noise alone never moves a batch;
//   - and all this held at two ticks in a row.
// Batch time is taken as fixed + per_sample * b. Where no line could be fitted
// to the worker's own batches since its speed changed, the ratio of the two is
// taken from its last line (a throttled processor slows both alike), or from
// most workers' lines, or the time is taken as proportional to the part. With
// a fixed cost the last falls short of the goal, never beyond it, so repeating
// it converges without swinging.
#pragma once

#include <map>

#include "ctl/control/solution.h"
#include "ctl/control/solutions/backup_workers.h"
#include "ctl/control/solutions/restart.h"

namespace antdt::ctl::solutions {

class Nd final : public Solution {
 public:
  static constexpr double kLeastGain = 0.06;
  static constexpr double kErrors = 5.0;

  [[nodiscard]] std::string_view name() const override { return "nd"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;

 private:
  void remember_fixed_costs(const ClusterView& view);

  BackupJudge backups_;
  RestartJudge restart_;
  bool wanted_before_ = false;  // at the last tick
  // What a batch costs beside its samples, in samples, by each worker's last line.
  std::map<WorkerId, double> fixed_samples_;
};

}  // namespace antdt::ctl::solutions
