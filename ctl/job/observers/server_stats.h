// The last statistics of each parameter server, for the report. An observer. Pure; not durable.
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
  // `role`: the role of the process in its server (ServerGroup::role_of).
  void said(WorkerId server, const wire::PsStats& stats, ServerRole role);
  // One of a server's two processes was lost.
  void switched(const servers::ReportSwitch& switched);

  [[nodiscard]] wire::PsStats of(WorkerId server) const;

 private:
  std::map<WorkerId, wire::PsStats> said_;
};

}  // namespace antdt::ctl
