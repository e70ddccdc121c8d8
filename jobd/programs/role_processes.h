// The processes of the job's roles: where each runs, what room a host has for
// them, and how one is started. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/agent_messages.h"
#include "ctl/processes/worker_process.h"
#include "launcher/config/job_config.h"
#include "launcher/config/placement.h"

namespace antdt::jobd {

// The role's part of the configuration, by the letter of its ids: servers are
// 's', everybody else is a worker.
[[nodiscard]] const launcher::RoleSection& section_of(const launcher::RolesSection& roles,
                                                      char role);

// Workers in the order of their ids, then servers in that of theirs, on `hosts`,
// whose names are the end points of their agents. Fewer workers than wanted where
// the job bears that; none where clients come by themselves (count 0).
[[nodiscard]] Result<std::vector<ctl::PlacedWorker>> place_processes(
    const std::vector<launcher::HostResources>& hosts, const launcher::RolesSection& roles);

// Servers that `host` is to run and that are not among those `running` there. Of
// a job of which nothing is placed yet (`known` has no server): all, since
// servers are for jobs of one host.
[[nodiscard]] std::uint32_t servers_to_come(const launcher::RolesSection& roles,
                                            const std::vector<ctl::WorkerProcess>& known,
                                            const std::string& host,
                                            const std::vector<wire::RunningProcess>& running);

// Processes of this job that a host takes in all: `running` there already, the
// servers to come, and the workers for which what is `free` beside those suffices.
// Who is running has its part of the host already: `free` is without it.
[[nodiscard]] std::uint32_t room_on(const launcher::HostResources& free,
                                    const launcher::RolesSection& roles, std::uint32_t running,
                                    std::uint32_t servers_to_come);

// How a process of that role is started, but for what only the run knows: its
// directory, the configuration's text and how often agents report.
// `extra`: variables that its environment has after those of the configuration.
[[nodiscard]] wire::StartProcess start_order(const launcher::JobConfig& config, char role,
                                             const std::vector<wire::EnvVar>& extra);

}  // namespace antdt::jobd
