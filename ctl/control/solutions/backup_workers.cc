#include "ctl/control/solutions/backup_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace antdt::ctl::solutions {

Decision BackupWorkersFixed::decide(const ClusterView& view, MonoTime /*now*/) {
  if (view.backups != 0U || view.workers.size() < 2) return {};
  return {{BackupWorkers{1}}, "[trainer] backup_workers is 0: one push is not waited for"};
}

Decision BackupJudge::decide(const ClusterView& view, MonoTime now) {
  const std::uint32_t least = view.least_backups;
  if (!view.backups || view.workers.size() < 2 || view.workers.size() <= least) return {};
  if (!first_) {
    first_ = now;
    // An earlier job daemon has seen as many.
    stragglers_ = *view.backups > least ? *view.backups : 0;
  }
  double transient = 0;
  double waits = 0;
  for (const WorkerView& w : view.workers) {
    transient += w.verdict.kind == VerdictKind::kTransient ? 1 : 0;
    waits += w.wait_share / static_cast<double>(view.workers.size());
  }
  const double window_s = to_seconds(view.persistent_window);
  const double passed_s = last_ ? to_seconds(now - *last_) : 0;
  const double weight = std::exp(-passed_s / window_s);
  stragglers_ = weight * stragglers_ + (1 - weight) * transient;
  last_ = now;
  // Waits for one window after the beginning and after the last change.
  if (now - changed_.value_or(*first_) < view.persistent_window) return {};
  const auto most = static_cast<std::uint32_t>(kMost * static_cast<double>(view.workers.size()));
  const auto usual = static_cast<std::uint32_t>(std::lround(stragglers_));
  const std::uint32_t count = std::max(least, std::min(most, usual));
  const bool more = count > *view.backups && waits > kWaits;
  const bool fewer = count < *view.backups && stragglers_ < *view.backups - 0.75;
  if (!more && !fewer) return {};
  changed_ = now;
  const double samples = static_cast<double>(view.workers.size() - count) /
                         static_cast<double>(view.workers.size() - least);
  const double rate = view.optimizer == "sgd" ? samples : std::sqrt(samples);
  return {{BackupWorkers{count}, AdjustLearningRate{rate}},
          fmt::format("{:.1f} workers are slow for a short while at a time, and the workers wait "
                      "{:.0f} % of their time: a step goes on without {} pushes instead of {}, at "
                      "{:.2f} of the job's learning rate",
                      stragglers_, 100 * waits, count, *view.backups, rate)};
}

}  // namespace antdt::ctl::solutions
