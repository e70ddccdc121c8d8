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

// kUnreachable, with what to check, if any agent was `silent` for `timeout`. `keys`: the directory
// of those with which they were asked.
[[nodiscard]] Status check_answers(const std::vector<std::string>& silent, Duration timeout,
                                   const std::string& keys);

// How long agents are waited for.
struct Patience {
  Duration for_an_answer{};
  // Further, until each has looked at its devices for the first time, which takes seconds where a
  // driver has to wake. 0 for a job that uses none.
  Duration for_devices{};
};

// Sends hello to every agent and returns what each has free, in the order of cluster.hosts. All
// hosts that do not answer in time are named in one error (kUnreachable), with what to check.
// kRefused names all agents that refuse, with their reasons, or that would start workers as another
// user than the caller.
[[nodiscard]] Result<std::vector<HostResources>> ask_agents(transport::Context& context,
                                                            const ClusterSection& cluster,
                                                            const ClusterKeys& keys,
                                                            Patience patience);

// The same for a run that goes on, which can do so while some of its hosts are away: returns those
// whose agents do not answer. An error only if none of them does, or if one refuses.
[[nodiscard]] Result<std::vector<std::string>> absent_agents(transport::Context& context,
                                                             const ClusterSection& cluster,
                                                             const ClusterKeys& keys,
                                                             Duration timeout);

// The hosts, as in cluster.hosts, whose agents say nothing within `timeout`.
[[nodiscard]] Result<std::vector<std::string>> silent_agents(transport::Context& context,
                                                             const ClusterSection& cluster,
                                                             const ClusterKeys& keys,
                                                             Duration timeout);

}  // namespace antdt::launcher
