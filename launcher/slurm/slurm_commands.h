// What the commands of Slurm say of this allocation, and where they are.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/slurm/allocation.h"

namespace antdt::launcher {

// kUsage, with advice, if srun or scontrol is not in PATH.
[[nodiscard]] Status find_slurm();

struct LentNode {
  std::string name;
  std::string address;  // numeric
  std::uint32_t cpus = 0;
};
// The nodes that the allocation has now, in the order in which Slurm lists them.
[[nodiscard]] Result<std::vector<LentNode>> nodes_of(const Allocation& allocation);

}  // namespace antdt::launcher
