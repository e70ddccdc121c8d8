// How each member of a job's etcd answers this host, for `antdt doctor`.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "launcher/config/job_config.h"

namespace antdt::jobd {

struct StoreMember {
  std::string member;     // "10.0.0.1:2379"
  std::string error;      // why it cannot be used; empty: it can
  Duration answers_in{};  // the quickest of a few answers, which a majority of members agreed to
};

// One after the other; empty if the job has no cluster.store. A member that does not answer costs
// up to three seconds.
[[nodiscard]] std::vector<StoreMember> ask_store_members(const launcher::ClusterSection& cluster);

}  // namespace antdt::jobd
