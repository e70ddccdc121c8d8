// Asks the hosts of [cluster] before anything starts.
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

// All keys that a job needs to talk to its agents.
struct ClusterKeys {
  transport::KeyPair job;                    // <keys>/job.key
  std::vector<transport::PublicKey> agents;  // by host, in the order of cluster.hosts
};

// An agent's key is the first that exists of <keys>/agents/<host>:<port>.pub, <host>.pub and
// cluster.pub. The error (kUsage) names every file that is missing and how to make it.
[[nodiscard]] Result<ClusterKeys> load_cluster_keys(const ClusterSection& cluster);

// Sends hello to every agent and returns what each has free, in the order of cluster.hosts. All
// hosts that do not answer within `timeout` are named in one error (kUnreachable), with what to
// check. kRefused names all agents that refuse, with their reasons, or that would start workers as
// another user than the caller.
[[nodiscard]] Result<std::vector<HostResources>> ask_agents(transport::Context& context,
                                                            const ClusterSection& cluster,
                                                            const ClusterKeys& keys,
                                                            Duration timeout);

// The hosts, as in cluster.hosts, whose agents say nothing within `timeout`.
[[nodiscard]] Result<std::vector<std::string>> silent_agents(transport::Context& context,
                                                             const ClusterSection& cluster,
                                                             const ClusterKeys& keys,
                                                             Duration timeout);

}  // namespace antdt::launcher
