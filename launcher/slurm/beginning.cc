#include "launcher/slurm/beginning.h"

#include <fmt/format.h>

#include "launcher/slurm/agent_step.h"
#include "launcher/view/worker_logs.h"

namespace antdt::launcher {
namespace {

constexpr std::size_t kLastLines = 5;

std::string end_of(const std::string& log) {
  std::string_view lines = last_lines_of(log, kLastLines);
  while (lines.ends_with('\n')) lines.remove_suffix(1);
  return lines.empty() ? " (srun and the agent wrote nothing)" : fmt::format(":\n{}", lines);
}

std::string port_of(const std::string& end_point) {
  return end_point.substr(end_point.rfind(':') + 1);
}

std::string why_ended(const AgentBegins& agent) {
  if (agent.log.find(kNoProgram) != std::string::npos) {
    return fmt::format(
        "the agent was not started on {}{}\nAntDT must be installed at the same path "
        "on all nodes: install it there, or leave {} out (sbatch --exclude={})",
        agent.node, end_of(agent.log), agent.node, agent.node);
  }
  if (agent.log.find("Address already in use") != std::string::npos) {
    const std::string port = port_of(agent.end_point);
    return fmt::format(
        "port {0} on {1} is in use by another program, which `ss -ltnp` there shows. "
        "Submit the job again: its agents' port follows from its number",
        port, agent.node);
  }
  if (agent.log.find("Task launch for StepId") != std::string::npos) {
    return fmt::format(
        "Slurm could not start the agent on {0}{1}\nsinfo -lN -n {0} shows how Slurm sees the "
        "node; "
        "leave it out by sbatch --exclude={0}",
        agent.node, end_of(agent.log));
  }
  return fmt::format("the agent on {} ended before it was ready{}", agent.node, end_of(agent.log));
}

std::string why_not_reached(const AgentBegins& agent) {
  return fmt::format(
      "the agent on {0} listens, and does not answer at {1} within {2:g} s. A firewall "
      "between this host and {0} must let the tcp ports 20000-29999 through; or leave {0} "
      "out (sbatch --exclude={0})",
      agent.node, agent.end_point, to_seconds(kAgentAnswers));
}

std::string why_not_started(const AgentBegins& agent) {
  return fmt::format(
      "srun did not start the agent on {0} within {1:g} s{2}\nsinfo -lN -n {0} shows how "
      "Slurm sees the node; leave it out by sbatch --exclude={0}",
      agent.node, to_seconds(kAgentStarts), end_of(agent.log));
}

}  // namespace

bool says_it_listens(const std::string& log) {
  return log.find(" listening on ") != std::string::npos;
}

Result<bool> have_begun(const std::vector<AgentBegins>& agents, Duration waited) {
  bool all = true;
  std::string wrong;
  const auto add = [&](const std::string& text) { wrong += (wrong.empty() ? "" : "\n") + text; };
  for (const AgentBegins& agent : agents) {
    if (agent.step_ended) {
      add(why_ended(agent));
    } else if (!agent.answers && agent.listened) {
      if (*agent.listened > kAgentAnswers) add(why_not_reached(agent));
    } else if (!agent.answers && waited > kAgentStarts) {
      add(why_not_started(agent));
    }
    all = all && agent.answers;
  }
  if (wrong.empty()) return all;
  return fail(ErrorKind::kUnreachable, "{}", wrong);
}

}  // namespace antdt::launcher
