// AntDT-ND, under all-reduce, for clusters shared with other work: Xiao et al., "AntDT: A
// Self-Adaptive Distributed Training Framework for Leader and Straggler Nodes", arXiv:2404.09679.
// AdjustBatch: within a constant global batch each worker gets a part in proportion to its speed
// over the transient window. KillRestart: a persistent straggler is started again elsewhere if that
// pays (ctl/control/solutions/restart.h); its batch has been reduced before that. BackupWorkers,
// under sync = "ps-bsp": there are more of them while transient stragglers occur most of the time
// (ctl/control/solutions/backup_workers.h).
//
// The paper does not say when not to act. Here a change is made when
//   - every worker has been measured since the last plan, and the speeds that matter are not just
//     changing;
//   - the step is expected to become shorter by more than kLeastGain, including what all workers
//   wait
//     for anyway (the collective, or servers);
//   - that gain exceeds kErrors standard errors of the step time that follows from the slowest
//     worker's speed, so that noise alone never moves a batch;
//   - and all this held at two ticks in a row.
// The time of a batch is modelled as fixed + per_sample * b. If no line could be fitted to the
// worker's batches since its speed changed, the ratio of the two is taken from its last line (a
// throttled processor slows both alike), or from most workers' lines; otherwise the time is taken
// as proportional to the part. If there is a fixed cost, that model changes a part by too little,
// never by too much, so repeating it converges without oscillation.
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
  bool wanted_before_ = false;  // whether a change was wanted at the last tick
  // The fixed cost of a batch, in samples, by each worker's last line.
  std::map<WorkerId, double> fixed_samples_;
};

}  // namespace antdt::ctl::solutions
