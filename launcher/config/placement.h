// Which worker and which server runs on which host. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/report/device_report.h"
#include "core/result.h"
#include "core/wire/agent_messages.h"
#include "launcher/config/job_config.h"

namespace antdt::launcher {

// The free resources that a host's agent reported.
struct HostResources {
  std::string name;  // for messages
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t gpus = 0;           // that can be leased to one process alone
  std::uint32_t sharable_gpus = 0;  // that can be leased to processes that share them
  std::string gpu_troubles = {};    // why others cannot: lines for messages
  std::string host_name = {};       // as its agent says it, and [[domain]] names it; "": as `name`
  [[nodiscard]] const std::string& name_in_domains() const {
    return host_name.empty() ? name : host_name;
  }
};
// The lines of HostResources::gpu_troubles; "" if nothing is wrong.
[[nodiscard]] std::string gpu_troubles(const report::HostDevices& devices);
// What the agent of the host `name` reported.
[[nodiscard]] HostResources resources_of(std::string name, const wire::AgentWelcome& welcome);

// The index in `hosts` for each of `count` workers, rising, so that workers on one host have
// neighbouring ranks. Workers are spread in proportion to what the hosts can take (to their CPUs if
// no resources are requested). A resource of 0 always fits. The error (kUnreachable) says what each
// host has and how many workers are too many.
[[nodiscard]] Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts,
                                                     std::uint32_t count, const Resources& each);

// The same for as many workers as fit, between the role's min and its count.
[[nodiscard]] Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts,
                                                     const RoleSection& role);

// The index in `hosts` of each process of a role, by the process's own index; each list rises.
struct Placement {
  std::vector<std::size_t> workers;
  std::vector<std::size_t> servers;
};

// How many processes with `each` fit on `host`; 2^40 if no resources are requested.
[[nodiscard]] std::uint64_t fits(const HostResources& host, const Resources& each);
// `host` without the resources of `count` such processes, but not below zero.
[[nodiscard]] HostResources without(HostResources host, std::uint64_t count, const Resources& each);

// Places all roles of a job. The servers' resources are set aside before the workers are placed,
// because a job cannot begin without all its servers, while a range of workers is satisfied with
// what is left.
[[nodiscard]] Result<Placement> place(const std::vector<HostResources>& hosts,
                                      const RolesSection& roles);

}  // namespace antdt::launcher
