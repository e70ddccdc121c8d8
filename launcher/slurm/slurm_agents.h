// The agents of one job on the nodes of its Slurm allocation.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/os/runtime_dir.h"
#include "core/os/spawn.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/slurm/allocation.h"
#include "launcher/slurm/beginning.h"
#include "launcher/view/live_view.h"

namespace antdt::launcher {

// Starts an agent on each node of the allocation, with keys made for them, and returns once all of
// them answer. The destructor ends them, and with them every process of the job on these nodes.
//
// If this process is killed, the agents end as well, because their standard input is closed, and a
// guard, a process of its own, removes the keys and ends what else the job has on this host.
class SlurmAgents {
 public:
  SlurmAgents() = default;
  SlurmAgents(const SlurmAgents&) = delete;
  SlurmAgents& operator=(const SlurmAgents&) = delete;
  ~SlurmAgents();

  // False: SIGINT, SIGTERM or SIGHUP, which must be held (hold_signals()), came before all agents
  // answered. kUsage outside an allocation or without Slurm's programs; kUnreachable if Slurm or an
  // agent does not answer in time.
  [[nodiscard]] Result<bool> start(transport::Context& context, const std::string& agent_program);

  // Settings of the job that name the agents and their keys, as for --set.
  [[nodiscard]] std::vector<std::string> settings() const;

  // For the watching of the job: a node whose step has ended is gone. Valid as long as this object.
  [[nodiscard]] LentHosts lent();

 private:
  struct Child {
    pid_t pid = 0;  // 0: it has ended
    OwnedFd input;
  };
  struct Step {
    AgentBegins begins;
    std::string log;
    Child srun;
    std::optional<MonoTime> listens;  // since when its agent has said so
  };
  [[nodiscard]] static Result<Child> start_child(Spawn what);
  [[nodiscard]] Status start_guard();
  [[nodiscard]] Status start_steps(const Allocation& allocation, const std::string& agent_program);
  [[nodiscard]] Status start_step(const std::string& node, const std::string& end_point,
                                  std::vector<std::string> arguments, const std::string& keys);
  [[nodiscard]] Result<bool> wait_for_agents(transport::Context& context);
  [[nodiscard]] std::vector<AgentBegins> look(const std::vector<std::string>& silent, MonoTime now);
  void job_has_begun(const RunControl& control);
  [[nodiscard]] std::vector<wire::HostGone> gone();

  std::string directory_;  // private; keys and logs
  KeptDirectories kept_;   // that one: a job daemon that is started again reads its keys
  std::vector<Step> steps_;
  Child guard_;
};

}  // namespace antdt::launcher
