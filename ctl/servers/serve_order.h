// Everything that one server has to know, in one message: all members and where they are, how they
// work, and the server's own part.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/servers/ps_messages.h"
#include "ctl/servers/group_image.h"
#include "ctl/servers/group_workers.h"
#include "ctl/servers/placement.h"
#include "ctl/servers/roll.h"
#include "ctl/servers/row_source.h"

namespace antdt::ctl::servers {

struct ServeTerms {
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint64_t number = 0;  // number of the order
  std::uint32_t backups = 0;
  double rate = 1;
  std::uint64_t last_cut = 0;
};

// `server` must have a part in the group.
[[nodiscard]] wire::PsServe serve_order(const GroupServer& server, const ServeTerms& terms,
                                        const Placement& placement, const GroupWorkers& workers,
                                        const RowSource& rows, const Roll& roll);

}  // namespace antdt::ctl::servers
