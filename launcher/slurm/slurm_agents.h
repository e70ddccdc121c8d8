// The agents of one job on the nodes of its Slurm allocation.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/slurm/allocation.h"

namespace antdt::launcher {

// Starts an agent on each node of the allocation, with keys made for them, and returns once all of
// them answer. The destructor ends them, and with them every process of the job on these nodes. If
// this process dies, the agents end as well, because their standard input is closed.
class SlurmAgents {
 public:
  SlurmAgents() = default;
  SlurmAgents(const SlurmAgents&) = delete;
  SlurmAgents& operator=(const SlurmAgents&) = delete;
  ~SlurmAgents();

  // kUsage outside an allocation; kUnreachable if Slurm or an agent does not answer in time.
  [[nodiscard]] Status start(transport::Context& context, const std::string& agent_program);

  // Settings of the job that name the agents and their keys, as for --set.
  [[nodiscard]] std::vector<std::string> settings() const;

 private:
  struct Step {
    std::string node;
    pid_t pid = 0;
    OwnedFd input;
  };
  [[nodiscard]] Status start_steps(const Allocation& allocation, const std::string& agent_program);
  [[nodiscard]] Status start_step(const std::string& node, std::vector<std::string> arguments,
                                  const std::string& keys);
  [[nodiscard]] Status wait_for_agents(transport::Context& context);
  [[nodiscard]] Status check_steps();

  std::string directory_;  // private; keys and logs
  std::vector<std::string> hosts_;
  std::vector<Step> steps_;
};

}  // namespace antdt::launcher
