// The environment that torchrun gives its workers, with which an unmodified PyTorch script finds
// its group. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "ctl/lifecycle/lifecycle.h"

namespace antdt::jobd {

struct TorchrunJob {
  std::string job;          // TORCHELASTIC_RUN_ID
  std::string role;         // ROLE_NAME
  std::string master_addr;  // an address of rank 0's host
  std::uint32_t master_port = 0;
  std::uint32_t restarts = 0;
  std::uint32_t max_restarts = 0;
  std::string run_dir;  // error files are written below it
};

// Ranks are contiguous on each host, in the order of the workers' host_order. Returns one list for
// each of `workers`, by index.
[[nodiscard]] std::vector<std::vector<wire::EnvVar>> torchrun_environment(
    const TorchrunJob& job, const std::vector<ctl::PlacedWorker>& workers);

// Repeats the local rank and the local size of such an environment in the order that starts the
// process, for the lease of its devices.
void set_local_rank(const std::vector<wire::EnvVar>& environment, wire::StartProcess& start);

}  // namespace antdt::jobd
