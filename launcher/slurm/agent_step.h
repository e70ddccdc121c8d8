// How the agent of one node is started, as a step of Slurm. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::launcher {

struct AgentStep {
  std::string program;  // antdtd; at this path on every node
  std::string node;
  std::string listen;  // "10.0.0.1:27001"
  std::uint32_t cpus = 0;
  std::uint64_t memory_bytes = 0;  // 0: what the agent finds
  bool allow_root = false;
};

inline constexpr const char* kNoProgram = "antdt: there is no program";

// The arguments of srun. One step a node, so that the loss of a node ends no other agent. The agent
// runs in a private directory of the node's TMPDIR, which is removed when the agent ends. It reads
// its keys from standard input (handover()), and ends when that is closed. Where the program is
// missing, the step says kNoProgram and ends.
[[nodiscard]] std::vector<std::string> srun_arguments(const AgentStep& step);

// What is written to an agent's standard input: the texts of agent.key and of the public key that
// may use the agent. Keys are never in arguments or environments, which others may see.
[[nodiscard]] std::string handover(const std::string& agent_key, const std::string& job_pub);

}  // namespace antdt::launcher
