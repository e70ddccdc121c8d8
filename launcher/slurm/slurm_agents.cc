#include "launcher/slurm/slurm_agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/clock.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/os/runtime_dir.h"
#include "core/os/spawn.h"
#include "core/transport/keys.h"
#include "launcher/config/cluster.h"
#include "launcher/slurm/agent_step.h"
#include "launcher/start/start.h"

namespace antdt::launcher {
namespace {

constexpr Duration kAgentsBegin = std::chrono::seconds(60);
constexpr Duration kAgentAnswers = std::chrono::seconds(1);
constexpr Duration kStepsEnd = std::chrono::seconds(20);
constexpr Duration kLookAgain = std::chrono::milliseconds(10);

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
  return fail(ErrorKind::kUnreachable, "scontrol cannot tell the nodes of this allocation: {}",
              text);
}

// The numeric address of a node.
Result<std::string> resolve(const SlurmNode& node) {
  auto addresses = addresses_of(node.address);
  if (addresses) return addresses->front();
  return fail(ErrorKind::kUnreachable, "the address {} of the node {} cannot be resolved: {}",
              node.address, node.name, addresses.error().message);
}

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// A pipe takes this much without a reader (PIPE_BUF bytes at least), and keys are shorter.
Status write_all(const OwnedFd& to, const std::string& text) {
  if (::write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return fail_errno(ErrorKind::kIo, errno, "cannot hand over the keys to srun");
}

}  // namespace

Status SlurmAgents::start(transport::Context& context, const std::string& agent_program) {
  ANTDT_TRY(const Allocation allocation, read_allocation(variable));
  ANTDT_TRY(const std::string runtime, runtime_directory());
  const std::string directory = fmt::format("{}/slurm-{}-{}", runtime, allocation.job, ::getpid());
  ANTDT_RETURN_IF_ERROR(ensure_private_directory(directory));
  directory_ = directory;
  ANTDT_RETURN_IF_ERROR(start_steps(allocation, agent_program));
  return wait_for_agents(context);
}

Status SlurmAgents::start_steps(const Allocation& allocation, const std::string& agent_program) {
  ANTDT_TRY(const std::string text,
            scontrol({"--oneliner", "show", "node", allocation.node_list}, directory_));
  ANTDT_TRY(const std::vector<SlurmNode> nodes, read_nodes(text));
  if (nodes.size() != allocation.cpus.size()) {
    return fail(ErrorKind::kUsage,
                "SLURM_JOB_CPUS_PER_NODE counts {} nodes, and SLURM_JOB_NODELIST names {}",
                allocation.cpus.size(), nodes.size());
  }
  ANTDT_TRY([[maybe_unused]] const auto job_key, transport::generate_key_pair(directory_, "job"));
  ANTDT_TRY([[maybe_unused]] const auto agent_key,
            transport::generate_key_pair(directory_ + "/agents", "cluster"));
  ANTDT_TRY(const std::string secret, read_file(directory_ + "/agents/cluster.key"));
  ANTDT_TRY(const std::string job_pub, read_file(directory_ + "/job.pub"));
  const std::string keys = handover(secret, job_pub);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ANTDT_TRY(const std::string address, resolve(nodes[i]));
    hosts_.push_back(with_port(address, agent_port(allocation.job)));
    ANTDT_RETURN_IF_ERROR(
        start_step(nodes[i].name,
                   srun_arguments({agent_program, nodes[i].name, hosts_.back(), allocation.cpus[i],
                                   allocation.memory_bytes, ::geteuid() == 0}),
                   keys));
  }
  return {};
}

Status SlurmAgents::start_step(const std::string& node, std::vector<std::string> arguments,
                               const std::string& keys) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorKind::kIo, errno, "cannot make a pipe");
  const OwnedFd reads(ends[0]);
  OwnedFd writes(ends[1]);
  const std::string log = fmt::format("{}/{}.log", directory_, node);
  const OwnedFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + log);
  Spawn what;
  what.program = "srun";
  what.arguments = std::move(arguments);
  what.standard_input = reads.get();
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.group = ChildGroup::kOwn;  // Ctrl-C is for the job, which needs its agents to stop
  ANTDT_TRY(const Spawned started, spawn(what));
  steps_.push_back({node, started.pid, std::move(writes)});
  return write_all(steps_.back().input, keys);
}

// Whether every srun still runs.
Status SlurmAgents::check_steps() {
  for (Step& step : steps_) {
    int status = 0;
    if (step.pid != 0 && ::waitpid(step.pid, &status, WNOHANG) == step.pid) step.pid = 0;
    if (step.pid != 0) continue;
    return fail(ErrorKind::kUnreachable, "the agent on {} ended before it was ready:\n{}",
                step.node, last_lines(fmt::format("{}/{}.log", directory_, step.node), 5));
  }
  return {};
}

Status SlurmAgents::wait_for_agents(transport::Context& context) {
  ClusterSection cluster;
  cluster.hosts = hosts_;
  cluster.keys = directory_;
  ANTDT_TRY(const ClusterKeys keys, load_cluster_keys(cluster));
  const MonoTime deadline = SteadyClock().now() + kAgentsBegin;
  while (true) {
    const auto answers = ask_agents(context, cluster, keys, kAgentAnswers);
    if (answers) return {};
    if (answers.error().kind != ErrorKind::kUnreachable) return tl::unexpected(answers.error());
    ANTDT_RETURN_IF_ERROR(check_steps());
    if (SteadyClock().now() > deadline) return tl::unexpected(answers.error());
  }
}

std::vector<std::string> SlurmAgents::settings() const {
  std::string list;
  for (const std::string& host : hosts_) list += (list.empty() ? "\"" : ", \"") + host + "\"";
  return {fmt::format("cluster.hosts=[{}]", list), fmt::format("cluster.keys=\"{}\"", directory_)};
}

SlurmAgents::~SlurmAgents() {
  for (Step& step : steps_) step.input.close();
  const MonoTime deadline = SteadyClock().now() + kStepsEnd;
  for (Step& step : steps_) {
    while (step.pid != 0 && ::waitpid(step.pid, nullptr, WNOHANG) == 0) {
      if (SteadyClock().now() > deadline) {
        // Its node does not answer; Slurm ends what is there with the allocation.
        ::kill(step.pid, SIGKILL);
        ::waitpid(step.pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace antdt::launcher
