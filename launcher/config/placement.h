// Which worker and which server runs on which host. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::launcher {

// What a host's agent reported as free.
struct HostResources {
  std::string name;  // for messages
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t devices = 0;
};

// The index in `hosts` for each of `count` workers, rising: workers of one host
// are neighbours in rank. Work is spread in proportion to what hosts can take
// (to their cpus where nothing is asked for). A resource of 0 always fits. The
// error (kUnreachable) says what each host has and how many workers are too many.
[[nodiscard]] Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts,
                                                     std::uint32_t count, const Resources& each);

// The same for as many as fit between the role's min and its count.
[[nodiscard]] Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts,
                                                     const RoleSection& role);

// The index in `hosts` of each process of a role, by its own index; each list rises.
struct Placement {
  std::vector<std::size_t> workers;
  std::vector<std::size_t> servers;
};

// How many processes with `each` fit on `host`, 2^40 where nothing is asked for.
[[nodiscard]] std::uint64_t fits(const HostResources& host, const Resources& each);
// `host` less what `count` such processes take, never below nothing.
[[nodiscard]] HostResources without(HostResources host, std::uint64_t count, const Resources& each);

// All roles of a job. The servers' room is set aside before the workers are
// placed as above: a job cannot begin without all its servers, and a range of
// workers is content with what is left.
[[nodiscard]] Result<Placement> place(const std::vector<HostResources>& hosts,
                                      const RolesSection& roles);

}  // namespace antdt::launcher
