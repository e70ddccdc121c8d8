// Backup workers: a step around parameter servers does not wait for the slowest b
// pushes. Chen et al., "Revisiting Distributed Synchronous SGD", arXiv:1604.00981.
// b is fixed: what [trainer] backup_workers says, or 1 where that is not written.
// Late pushes are not lost here: their records are computed again and pushed for the
// next step (docs/parameter-servers.md). It is there to compare with.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class BackupWorkersFixed final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "backup-workers"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;
};

// ND's use of them: when transient stragglers are there most of the time, and the
// others wait for them, a step goes on without as many as there usually are. Fewer
// again when they are gone.
//
// A step is then of fewer samples than the job was made for, and the learning rate follows:
// in proportion for SGD (Goyal et al., arXiv:1706.02677), by the square root where the
// optimizer divides by the gradient's own size (Malladi et al., arXiv:2205.10287).
class BackupJudge {
 public:
  // How much of their time workers must wait, in the mean, for more backup workers.
  static constexpr double kWaits = 0.25;
  // At most this part of the workers.
  static constexpr double kMost = 0.25;

  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now);

 private:
  double stragglers_ = 0;  // transient ones, in the mean over about a persistent window
  std::optional<std::uint32_t> least_;  // what the job began with
  std::optional<MonoTime> first_, last_, changed_;
};

}  // namespace antdt::ctl::solutions
