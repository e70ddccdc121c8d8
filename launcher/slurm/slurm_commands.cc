#include "launcher/slurm/slurm_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>

#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/os/owned_fd.h"
#include "core/os/spawn.h"
#include "launcher/start/paths.h"

namespace antdt::launcher {
namespace {

// The standard output of `scontrol ARGUMENTS`.
Result<std::string> scontrol(std::vector<std::string> arguments, const std::string& directory) {
  const std::string path = directory + "/scontrol";
  const OwnedFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + path);
  Spawn what;
  what.program = "scontrol";
  what.arguments = std::move(arguments);
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.dies_with_us = true;
  ANTDT_TRY(const Spawned started, spawn(what));
  int status = 0;
  while (::waitpid(started.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ANTDT_TRY(std::string text, read_file(path));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return fail(ErrorKind::kUnreachable,
              "scontrol cannot tell the nodes of this allocation: {}Is it still there (squeue)?",
              text);
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

Result<std::vector<LentNode>> nodes_of(const Allocation& allocation, const std::string& directory) {
  ANTDT_TRY(const std::string names,
            scontrol({"show", "hostnames", allocation.node_list}, directory));
  ANTDT_TRY(const auto cpus, cpus_by_name(allocation, names));
  ANTDT_TRY(const std::string job,
            scontrol({"--oneliner", "show", "job", std::to_string(allocation.job)}, directory));
  ANTDT_TRY(const std::string present, present_nodes(job));
  ANTDT_TRY(const std::string text, scontrol({"--oneliner", "show", "node", present}, directory));
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
