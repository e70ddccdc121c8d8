// Backup workers: a step with parameter servers does not wait for the slowest b pushes. Chen et
// al., "Revisiting Distributed Synchronous SGD", arXiv:1604.00981. b is fixed: it is [trainer]
// backup_workers, or 1 if that is not set. Late pushes are not lost here: their records are
// computed again and pushed for the next step (docs/parameter-servers.md). This solution exists for
// comparison.
#pragma once

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class BackupWorkersFixed final : public Solution {
 public:
  [[nodiscard]] std::string_view name() const override { return "backup-workers"; }
  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now) override;
};

// How ND uses backup workers: if there are transient stragglers most of the time, and the other
// workers wait for them, a step goes on without as many workers as there usually are stragglers.
// When these are gone, the number is reduced again, also by a job daemon that began with it. It is
// never below [trainer] backup_workers.
//
// A step then has fewer samples than the job was made for, and the learning rate follows: in
// proportion for SGD (Goyal et al., arXiv:1706.02677), by the square root if the optimizer divides
// by the gradient's own size (Malladi et al., arXiv:2205.10287).
class BackupJudge {
 public:
  // The part of their time that workers must wait, on average, before there are more backup
  // workers.
  static constexpr double kWaits = 0.25;
  // The most backup workers, as a part of all workers.
  static constexpr double kMost = 0.25;

  [[nodiscard]] Decision decide(const ClusterView& view, MonoTime now);

 private:
  double stragglers_ = 0;  // mean number of transient stragglers over about a persistent window
  std::optional<MonoTime> first_, last_, changed_;
};

}  // namespace antdt::ctl::solutions
