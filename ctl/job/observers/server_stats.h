// What each parameter server said of itself last, for the report. An observer. Pure; not durable.
#pragma once

#include <map>
#include <string_view>

#include "core/ids.h"
#include "core/wire/ps_messages.h"
#include "ctl/servers/server_group.h"

namespace antdt::ctl {

class ServerStats {
 public:
  // `role`: of its process in its server (ServerGroup::role_of).
  void said(WorkerId server, const wire::PsStats& stats, std::string_view role);
  // One of two processes is lost.
  void switched(const servers::ReportSwitch& switched);

  [[nodiscard]] wire::PsStats of(WorkerId server) const;

 private:
  std::map<WorkerId, wire::PsStats> said_;
};

}  // namespace antdt::ctl
