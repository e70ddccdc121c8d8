#include "launcher/slurm/slurm_agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/clock.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/transport/keys.h"
#include "launcher/config/cluster.h"
#include "launcher/slurm/agent_step.h"
#include "launcher/slurm/slurm_commands.h"
#include "launcher/start/start.h"

namespace antdt::launcher {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr Duration kStepsEnd = std::chrono::seconds(20);
constexpr Duration kLookAgain = std::chrono::milliseconds(10);

// What must not outlive this process, even if it is killed: the keys, and what the job has on this
// host. Without the directory of its sockets the job's processes end, and nothing starts its
// private agent again. Signals of a terminal or of Slurm are for the job, which stops in good order
// then.
constexpr const char* kGuard = R"sh(trap '' HUP INT TERM
while IFS= read -r path; do set -- "$@" "$path"; done
for path; do
  agent=$(cat "$path/state/lock" 2> /dev/null)
  rm -rf "$path"
  for signal in TERM TERM TERM TERM TERM KILL; do
    [ "$(cat "/proc/${agent:-none}/comm" 2> /dev/null)" = antdtd ] || break
    kill -$signal "$agent" && sleep 0.5
  done
  rm -rf "$path"
done
)sh";

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// A pipe takes this much without a reader (PIPE_BUF bytes at least), and keys are shorter.
Status write_all(const OwnedFd& to, const std::string& text) {
  if (::write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return fail_errno(ErrorKind::kIo, errno, "cannot write to a pipe");
}

// A signal that is held (hold_signals()).
bool is_asked_to_stop() {
  sigset_t pending;
  sigemptyset(&pending);
  ::sigpending(&pending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&pending, signal) == 1) return true;
  }
  return false;
}

bool has_ended(pid_t& child) {
  if (child != 0 && ::waitpid(child, nullptr, WNOHANG) == child) child = 0;
  return child == 0;
}

}  // namespace

Result<bool> SlurmAgents::start(transport::Context& context, const std::string& agent_program) {
  ANTDT_TRY(const Allocation allocation, read_allocation(variable));
  ANTDT_RETURN_IF_ERROR(find_slurm());
  ANTDT_TRY(const std::string runtime, runtime_directory());
  const std::string directory = fmt::format("{}/slurm-{}-{}", runtime, allocation.job, ::getpid());
  ANTDT_RETURN_IF_ERROR(ensure_private_directory(directory));
  directory_ = directory;
  kept_ = KeptDirectories({directory});
  ANTDT_RETURN_IF_ERROR(start_guard());
  ANTDT_RETURN_IF_ERROR(start_steps(allocation, agent_program));
  return wait_for_agents(context);
}

Status SlurmAgents::start_guard() {
  Spawn what;
  what.program = "/bin/sh";
  what.arguments = {"-c", kGuard, "antdt-guard", directory_};
  what.group = ChildGroup::kSession;
  ANTDT_TRY(guard_, start_child(std::move(what)));
  return {};
}

void SlurmAgents::job_has_begun(const RunControl& control) {
  const std::string sockets = control.jobd_socket.substr(0, control.jobd_socket.rfind('/'));
  [[maybe_unused]] const Status told = write_all(guard_.input, sockets + "\n");
}

Status SlurmAgents::start_steps(const Allocation& allocation, const std::string& agent_program) {
  ANTDT_TRY(const std::vector<LentNode> nodes, nodes_of(allocation));
  ANTDT_TRY([[maybe_unused]] const auto job_key, transport::generate_key_pair(directory_, "job"));
  ANTDT_TRY([[maybe_unused]] const auto agent_key,
            transport::generate_key_pair(directory_ + "/agents", "cluster"));
  ANTDT_TRY(const std::string secret, read_file(directory_ + "/agents/cluster.key"));
  ANTDT_TRY(const std::string job_pub, read_file(directory_ + "/job.pub"));
  const std::string keys = handover(secret, job_pub);
  for (const LentNode& node : nodes) {
    const std::string end_point = with_port(node.address, agent_port(allocation.job));
    ANTDT_RETURN_IF_ERROR(start_step(node.name, end_point,
                                     srun_arguments({agent_program, node.name, end_point, node.cpus,
                                                     allocation.memory_bytes, ::geteuid() == 0}),
                                     keys));
  }
  return {};
}

// Starts a program with a pipe as its standard input.
Result<SlurmAgents::Child> SlurmAgents::start_child(Spawn what) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorKind::kIo, errno, "cannot make a pipe");
  const OwnedFd reads(ends[0]);
  OwnedFd writes(ends[1]);
  what.standard_input = reads.get();
  ANTDT_TRY(const Spawned started, spawn(what));
  return Child{started.pid, std::move(writes)};
}

Status SlurmAgents::start_step(const std::string& node, const std::string& end_point,
                               std::vector<std::string> arguments, const std::string& keys) {
  Step step{{node, end_point, {}}, fmt::format("{}/{}.log", directory_, node), {}, {}};
  const OwnedFd out(::open(step.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + step.log);
  Spawn what;
  what.program = "srun";
  what.arguments = std::move(arguments);
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.group = ChildGroup::kOwn;  // Ctrl-C is for the job, which needs its agents to stop
  ANTDT_TRY(step.srun, start_child(std::move(what)));
  steps_.push_back(std::move(step));
  return write_all(steps_.back().srun.input, keys);
}

// Looks how far each agent is. `silent`: the end points that do not answer.
std::vector<AgentBegins> SlurmAgents::look(const std::vector<std::string>& silent, MonoTime now) {
  std::vector<AgentBegins> agents;
  for (Step& step : steps_) {
    AgentBegins& agent = step.begins;
    agent.step_ended = has_ended(step.srun.pid);
    agent.answers = std::ranges::find(silent, agent.end_point) == silent.end();
    agent.log = read_file(step.log).value_or("");
    if (!step.listens && says_it_listens(agent.log)) step.listens = now;
    if (step.listens) agent.listened = now - *step.listens;
    agents.push_back(agent);
  }
  return agents;
}

Result<bool> SlurmAgents::wait_for_agents(transport::Context& context) {
  ClusterSection cluster;
  for (const Step& step : steps_) cluster.hosts.push_back(step.begins.end_point);
  cluster.keys = directory_;
  ANTDT_TRY(const ClusterKeys keys, load_cluster_keys(cluster));
  const SteadyClock clock;
  const MonoTime begun = clock.now();
  while (!is_asked_to_stop()) {
    ANTDT_TRY(const auto silent, silent_agents(context, cluster, keys, kLook));
    const MonoTime now = clock.now();
    ANTDT_TRY(const bool all, have_begun(look(silent, now), now - begun));
    if (all) return true;
  }
  return false;
}

std::vector<std::string> SlurmAgents::settings() const {
  std::vector<std::string> hosts;
  for (const Step& step : steps_) hosts.push_back(fmt::format("\"{}\"", step.begins.end_point));
  return {fmt::format("cluster.hosts=[{}]", fmt::join(hosts, ", ")),
          fmt::format("cluster.keys=\"{}\"", directory_)};
}

std::vector<wire::HostGone> SlurmAgents::gone() {
  kept_.tend(SteadyClock().now());
  std::vector<wire::HostGone> hosts;
  for (Step& step : steps_) {
    if (step.srun.pid == 0 || !has_ended(step.srun.pid)) continue;
    hosts.push_back(
        {step.begins.end_point,
         fmt::format("the step of its agent has ended, since Slurm took the node away, or the "
                     "agent died ({})",
                     last_lines(step.log, 1))});
  }
  return hosts;
}

LentHosts SlurmAgents::lent() {
  return {[this](const RunControl& control) { job_has_begun(control); }, [this] { return gone(); }};
}

SlurmAgents::~SlurmAgents() {
  for (Step& step : steps_) step.srun.input.close();
  const MonoTime deadline = SteadyClock().now() + kStepsEnd;
  for (Step& step : steps_) {
    while (!has_ended(step.srun.pid)) {
      if (SteadyClock().now() > deadline) {
        // Its node does not answer; Slurm ends what is there with the allocation.
        ::kill(step.srun.pid, SIGKILL);
        ::waitpid(step.srun.pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  if (guard_.pid != 0) {
    guard_.input.close();
    ::waitpid(guard_.pid, nullptr, 0);
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace antdt::launcher
