// The last statistics of each parameter server, for the report. An observer. Pure. Durable is what
// servers decided that do not say it any more; the others tell theirs after a restart of the job
// daemon, too.
#pragma once

#include <map>
#include <string_view>

#include "core/ids.h"
#include "core/job_states.h"
#include "core/wire/servers/ps_messages.h"
#include "ctl/servers/server_group.h"

namespace antdt::ctl {

class ServerStats {
 public:
  // `replicated`: a server has two processes, and the one that is left tells the decisions of both.
  explicit ServerStats(bool replicated) : replicated_(replicated) {}

  // `role`: the role of the process in its server (ServerGroup::role_of). Returns whether
  // `earlier()` changed, since the server begins to count anew with each group that it serves.
  [[nodiscard]] bool said(WorkerId server, const wire::PsStats& stats, ServerRole role);
  // The process has ended. Returns whether `earlier()` changed.
  [[nodiscard]] bool ended(WorkerId server);
  // One of a server's two processes was lost.
  void switched(const servers::ReportSwitch& switched);

  [[nodiscard]] wire::PsStats of(WorkerId server) const;
  // The decisions of processes that have ended, and those for earlier groups. No other statistics.
  [[nodiscard]] const wire::PsStats& earlier() const { return earlier_; }
  void restore(const wire::PsStats& earlier) { earlier_ = earlier; }

 private:
  [[nodiscard]] bool put_by(wire::PsStats& stats);

  const bool replicated_;
  std::map<WorkerId, wire::PsStats> said_;
  wire::PsStats earlier_;
};

}  // namespace antdt::ctl
