#include "ctl/job/observers/server_stats.h"

namespace antdt::ctl {
namespace {

// What a server holds and serves, without its decisions.
wire::PsStats without_decisions(wire::PsStats stats) {
  stats.pushes_applied = stats.pushes_late = stats.pushes_repeated = 0;
  stats.staleness_pushes = stats.staleness_sum = stats.staleness_max = 0;
  return stats;
}

}  // namespace

// A backup makes the same decisions as its primary; counting both would count each twice.
void ServerStats::said(WorkerId server, const wire::PsStats& stats, ServerRole role) {
  const bool repeats = role == ServerRole::kBackup || role == ServerRole::kJoining;
  said_[server] = repeats ? without_decisions(stats) : stats;
}

void ServerStats::switched(const servers::ReportSwitch& switched) {
  const WorkerId lost = switched.lost.worker;
  if (switched.promoted) {  // the value is kept until the promoted process reports its own
    const wire::PsStats decided = said_[lost];
    wire::PsStats& now = said_[switched.alone.worker];
    now.pushes_applied = decided.pushes_applied;
    now.pushes_late = decided.pushes_late;
    now.pushes_repeated = decided.pushes_repeated;
    now.staleness_pushes = decided.staleness_pushes;
    now.staleness_sum = decided.staleness_sum;
    now.staleness_max = decided.staleness_max;
  }
  said_[lost] = without_decisions(said_[lost]);
}

wire::PsStats ServerStats::of(WorkerId server) const {
  const auto found = said_.find(server);
  return found == said_.end() ? wire::PsStats{} : found->second;
}

}  // namespace antdt::ctl
