#include "launcher/slurm/slurm_commands.h"

#include <fmt/format.h>

#include "core/os/net.h"
#include "core/os/output_of.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {
namespace {

constexpr Duration kSlurmPatience = std::chrono::seconds(60);  // with a busy slurmctld
constexpr std::size_t kMostBytes = 64 << 20;                   // a node takes about one KiB

// What `scontrol ARGUMENTS` writes.
Result<std::string> scontrol(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "scontrol");
  auto text = output_of(arguments, kSlurmPatience, kMostBytes);
  if (text) return text;
  return fail(ErrorKind::kUnreachable,
              "the nodes of this allocation are not known: {}. Is it still there (squeue)?",
              text.error().message);
}

// The numeric address of a node.
Result<std::string> resolve(const SlurmNode& node) {
  auto addresses = addresses_of(node.address);
  if (addresses) return addresses->front();
  return fail(ErrorKind::kUnreachable, "the address {} of the node {} cannot be resolved: {}",
              node.address, node.name, addresses.error().message);
}

}  // namespace

Status find_slurm() {
  for (const char* program : {"scontrol", "srun"}) {
    if (find_program(program, "", "/")) continue;
    return fail(
        ErrorKind::kUsage,
        "--launcher slurm: there is no {} in PATH: add the directory of Slurm's programs to it, or "
        "install them on this host (Debian: apt-get install slurm-client)",
        program);
  }
  return {};
}

Result<std::vector<LentNode>> nodes_of(const Allocation& allocation) {
  ANTDT_TRY(const std::string names, scontrol({"show", "hostnames", allocation.node_list}));
  ANTDT_TRY(const auto cpus, cpus_by_name(allocation, names));
  ANTDT_TRY(const std::string job,
            scontrol({"--oneliner", "show", "job", std::to_string(allocation.job)}));
  ANTDT_TRY(const std::string present, present_nodes(job));
  ANTDT_TRY(const std::string text, scontrol({"--oneliner", "show", "node", present}));
  ANTDT_TRY(const std::vector<SlurmNode> found, read_nodes(text));
  std::vector<LentNode> nodes;
  for (const SlurmNode& node : found) {
    const auto count = cpus.find(node.name);
    if (count == cpus.end()) {
      return fail(ErrorKind::kUsage,
                  "the allocation has got the node {} since it began: run the script "
                  "slurm_job_{}_resize.sh that scontrol wrote, and start again",
                  node.name, allocation.job);
    }
    ANTDT_TRY(std::string address, resolve(node));
    nodes.push_back({node.name, std::move(address), count->second});
  }
  return nodes;
}

}  // namespace antdt::launcher
