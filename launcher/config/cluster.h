// The hosts of [cluster], asked before anything starts.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/keys.h"
#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/config/placement.h"

namespace antdt::launcher {

// The keys that a job needs to speak to its agents, all of them.
struct ClusterKeys {
  transport::KeyPair job;                    // <keys>/job.key
  std::vector<transport::PublicKey> agents;  // by host, in the order of cluster.hosts
};

// An agent's key is the first there is of <keys>/agents/<host>:<port>.pub,
// <host>.pub and cluster.pub. The error (kUsage) names every file that is missing
// and how to make it.
[[nodiscard]] Result<ClusterKeys> load_cluster_keys(const ClusterSection& cluster);

// Says hello to every agent and hears what it has free, in the order of
// cluster.hosts. All hosts that do not answer within `timeout` are named in one
// error (kUnreachable) with what to check. kRefused: all that refuse, with their reasons,
// or that would start workers as another user than the one who asks.
[[nodiscard]] Result<std::vector<HostResources>> ask_agents(transport::Context& context,
                                                            const ClusterSection& cluster,
                                                            const ClusterKeys& keys,
                                                            Duration timeout);

}  // namespace antdt::launcher
