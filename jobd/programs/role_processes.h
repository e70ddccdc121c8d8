// The processes of the job's roles: where each runs, how many a host can take, and how one is
// started. Pure.
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

// The role's section in the configuration, by the letter of its ids: 's' is a server, every other
// letter a worker.
[[nodiscard]] const launcher::RoleSection& section_of(const launcher::RolesSection& roles,
                                                      char role);

// Workers in the order of their ids, then servers in the order of theirs, on `hosts`, whose names
// are the end points of their agents. Fewer workers than wanted if the job allows that; none if
// clients come by themselves (count 0).
[[nodiscard]] Result<std::vector<ctl::PlacedWorker>> place_processes(
    const std::vector<launcher::HostResources>& hosts, const launcher::RolesSection& roles);

// How many servers `host` must still run besides those `running` there. If nothing of the job is
// placed yet (`known` has no server), it is all of them.
[[nodiscard]] std::uint32_t servers_to_come(const launcher::RolesSection& roles,
                                            const std::vector<ctl::WorkerProcess>& known,
                                            const std::string& host,
                                            const std::vector<wire::RunningProcess>& running);

// How many processes of this job a host takes in all: those `running` there, the servers still to
// come, and the workers for which the rest of `free` suffices. `free` does not contain what the
// running processes use.
[[nodiscard]] std::uint32_t room_on(const launcher::HostResources& free,
                                    const launcher::RolesSection& roles, std::uint32_t running,
                                    std::uint32_t servers_to_come);

// The order that starts a process of that role, except for what only the run knows: its directory,
// the configuration's text, and how often agents report. `extra`: variables that are added to its
// environment after those of the configuration.
[[nodiscard]] wire::StartProcess start_order(const launcher::JobConfig& config, char role,
                                             const std::vector<wire::EnvVar>& extra);

}  // namespace antdt::jobd
