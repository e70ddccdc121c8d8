// What Slurm says of the allocation in which this program runs. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

struct Allocation {
  std::uint32_t job = 0;            // SLURM_JOB_ID
  std::string node_list;            // SLURM_JOB_NODELIST, "n[1-3]": the nodes when it began
  std::vector<std::uint32_t> cpus;  // of each node, in the order of the list
  std::uint64_t memory_bytes = 0;   // that the job may use on each node; 0: Slurm does not say
};

// The value of an environment variable; "" if it is not set.
using Variables = std::function<std::string(const std::string& name)>;

// kUsage if this is no allocation, or if a variable is not as Slurm writes it.
[[nodiscard]] Result<Allocation> read_allocation(const Variables& variables);

// "2(x3),1" is 2, 2, 2, 1: SLURM_JOB_CPUS_PER_NODE.
[[nodiscard]] Result<std::vector<std::uint32_t>> cpus_of_nodes(const std::string& text);

// The nodes that the allocation has now, as "n[1-2]": fewer after `scontrol update`, or after a
// node has failed. Reads the output of `scontrol --oneliner show job`.
[[nodiscard]] Result<std::string> present_nodes(const std::string& output);

// The CPUs of each node by name. `names`: those of node_list, one a line (`scontrol show
// hostnames`).
[[nodiscard]] Result<std::map<std::string, std::uint32_t>> cpus_by_name(
    const Allocation& allocation, const std::string& names);

struct SlurmNode {
  std::string name;
  std::string address;  // NodeAddr: a name or numeric
};
// Reads the output of `scontrol --oneliner show node`; the order is that of the output.
[[nodiscard]] Result<std::vector<SlurmNode>> read_nodes(const std::string& output);

// The port of the job's agents. Jobs that share a node have different ones, unless their numbers
// differ by a multiple of 10,000.
[[nodiscard]] std::uint16_t agent_port(std::uint32_t job);

}  // namespace antdt::launcher
