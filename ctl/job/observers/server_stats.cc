#include "ctl/job/observers/server_stats.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

// What a server holds and serves, without its decisions.
wire::PsStats without_decisions(wire::PsStats stats) {
  stats.pushes_applied = stats.pushes_late = stats.pushes_repeated = 0;
  stats.staleness_pushes = stats.staleness_sum = stats.staleness_max = 0;
  return stats;
}

bool counts_anew(const wire::PsStats& now, const wire::PsStats& before) {
  return now.pushes_applied < before.pushes_applied || now.pushes_late < before.pushes_late ||
         now.pushes_repeated < before.pushes_repeated ||
         now.staleness_pushes < before.staleness_pushes;
}

}  // namespace

// A backup makes the same decisions as its primary; counting both would count each twice.
bool ServerStats::said(WorkerId server, const wire::PsStats& stats, ServerRole role) {
  const bool repeats = role == ServerRole::kBackup || role == ServerRole::kJoining;
  wire::PsStats& last = said_[server];
  const bool changed = !replicated_ && counts_anew(stats, last) && put_by(last);
  last = repeats ? without_decisions(stats) : stats;
  return changed;
}

bool ServerStats::ended(WorkerId server) {
  return !replicated_ && said_.contains(server) && put_by(said_[server]);
}

bool ServerStats::put_by(wire::PsStats& stats) {
  const bool any = counts_anew({}, stats);
  earlier_.pushes_applied += stats.pushes_applied;
  earlier_.pushes_late += stats.pushes_late;
  earlier_.pushes_repeated += stats.pushes_repeated;
  earlier_.staleness_pushes += stats.staleness_pushes;
  earlier_.staleness_sum += stats.staleness_sum;
  earlier_.staleness_max = std::max(earlier_.staleness_max, stats.staleness_max);
  stats = without_decisions(stats);
  return any;
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
