#include "launcher/start/start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <thread>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"
#include "core/os/runtime_dir.h"
#include "core/os/spawn.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"
#include "launcher/start/job_link.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/paths.h"

extern char** environ;

namespace antdt::launcher {

namespace {

constexpr Duration kPoll = std::chrono::milliseconds(5);
constexpr Duration kAnswer = std::chrono::milliseconds(250);

// The agent, a child process that is to outlive this one. If starting the job fails, its directory
// is removed and it is ended. The directory goes first: without it, the shims end their processes
// instead of starting the agent again.
class AgentProcess {
 public:
  AgentProcess(pid_t pid, std::string socket_dir) : pid_(pid), socket_dir_(std::move(socket_dir)) {}
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;
  ~AgentProcess() {
    if (keep_) return;
    std::error_code ignored;
    std::filesystem::remove_all(socket_dir_, ignored);
    if (!ended()) end();
  }
  [[nodiscard]] bool ended() {
    if (!ended_) ended_ = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended_;
  }
  void keep() { keep_ = true; }

 private:
  void end() {
    ::kill(pid_, SIGTERM);
    const auto deadline = SteadyClock().now() + std::chrono::seconds(3);
    while (!ended() && SteadyClock().now() < deadline) std::this_thread::sleep_for(kPoll);
    if (ended()) return;
    ::kill(pid_, SIGKILL);
    ended_ = ::waitpid(pid_, nullptr, 0) == pid_;
  }
  pid_t pid_;
  std::string socket_dir_;
  bool ended_ = false;
  bool keep_ = false;
};

// Starts `command` in a session of its own without a terminal, no signal blocked or ignored, with
// its output in `log`.
Result<pid_t> spawn_detached(const std::vector<std::string>& command, const std::string& log) {
  const OwnedFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + log);
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.group = ChildGroup::kSession;
  ANTDT_TRY(const Spawned started, spawn(what));
  return started.pid;
}

// It must be short, because paths of sockets are limited. The end of the job's ULID is random.
std::string short_id(const std::string& job) {
  std::string id = job.size() > 10 ? job.substr(job.size() - 10) : job;
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  return id;
}

// In seconds. A job daemon that hangs must be replaced before its workers give it up, and a daemon
// that is only slow must not be replaced (docs/agent.md).
std::string keeper_patience(Duration orphan_timeout) {
  constexpr Duration kShortest = std::chrono::seconds(20);
  constexpr Duration kLongest = std::chrono::seconds(60);
  return fmt::format("{:.3f}", to_seconds(std::clamp(orphan_timeout, kShortest, kLongest)));
}

tl::unexpected<Error> failed(const std::string& what, const std::string& log) {
  const std::string lines = last_lines(log, 5);
  return fail(ErrorKind::kUnreachable, "{}; {} {}{}", what,
              lines.empty() ? "nothing is in its log" : "its log ends with", log,
              lines.empty() ? "" : ":\n" + lines);
}

Status wait_for_socket(AgentProcess& agent, const std::string& socket, const StartOptions& options,
                       const std::string& log) {
  const MonoTime deadline = SteadyClock().now() + options.deadline;
  while (::access(socket.c_str(), F_OK) != 0) {
    if (agent.ended()) return failed("the private agent ended before it was ready", log);
    if (SteadyClock().now() > deadline) {
      return failed("the private agent was not ready in time", log);
    }
    std::this_thread::sleep_for(kPoll);
  }
  return {};
}

Status order_job_daemon(transport::Context& context, const RunControl& control,
                        const StartOptions& options, const std::string& log) {
  const std::string socket_dir = control.jobd_socket.substr(0, control.jobd_socket.rfind('/'));
  wire::StartJob order;
  order.run_dir = options.run_dir;
  order.command = {options.programs.job_daemon, "--run-dir",    options.run_dir, "--agent-socket",
                   control.agent_socket,        "--socket-dir", socket_dir};
  if (options.state_dir != options.run_dir) {
    order.command.insert(order.command.end(), {"--state-dir", options.state_dir});
  }
  wire::Envelope envelope;
  envelope.job = options.job;
  ANTDT_TRY(transport::Socket agent, transport::Socket::connect_ipc(context, control.agent_socket));
  const auto packet =
      transport::request(agent, wire::make_packet(envelope, order), options.deadline);
  if (!packet) return failed("the private agent does not answer", log);
  const auto started = wire::open_reply<wire::JobStarted>(*packet);
  if (!started) {
    return failed("the private agent did not start the job daemon: " + started.error().message,
                  log);
  }
  return {};
}

Status wait_for_job_daemon(transport::Context& context, AgentProcess& agent,
                           const RunControl& control, const StartOptions& options,
                           const std::string& log) {
  const MonoTime deadline = SteadyClock().now() + options.deadline;
  while (::access(control.jobd_socket.c_str(), F_OK) != 0) {
    // A job that ends at once, even if it fails, has written its summary.
    if (::access((options.run_dir + "/summary.json").c_str(), F_OK) == 0) return {};
    if (agent.ended()) return failed("the job daemon could not be started", log);
    if (SteadyClock().now() > deadline) return failed("the job daemon was not ready in time", log);
    std::this_thread::sleep_for(kPoll);
  }
  ANTDT_TRY(JobLink link, JobLink::open(context, control.jobd_socket));
  while (!link.status(0, kAnswer)) {
    if (::access((options.run_dir + "/summary.json").c_str(), F_OK) == 0) return {};
    if (agent.ended()) return failed("the job daemon ended at once", log);
    if (SteadyClock().now() > deadline) return failed("the job daemon does not answer", log);
  }
  return {};
}

}  // namespace

Result<Programs> find_programs() {
  const std::string here = program_directory();
  ANTDT_TRY(std::string agent, find_program("antdtd", here, "."));
  ANTDT_TRY(std::string job_daemon, find_program("antdt-jobd", here, "."));
  return Programs{std::move(agent), std::move(job_daemon)};
}

std::string socket_directory(const std::string& socket_root, const std::string& job) {
  return socket_root + "/" + short_id(job);
}

std::string last_lines(const std::string& path, std::size_t lines) {
  const auto text = read_file(path);
  if (!text) return "";
  std::size_t from = text->size();
  if (from > 0 && text->back() == '\n') --from;
  const std::size_t end = from;
  while (from > 0 && lines > 0) {
    if ((*text)[from - 1] == '\n' && --lines == 0) break;
    --from;
  }
  return text->substr(from, end - from);
}

Result<RunControl> start_job(transport::Context& context, const StartOptions& options) {
  const std::string socket_dir = socket_directory(options.socket_root, options.job);
  remove_dead(options.socket_root);
  remove_if_dead(socket_dir, Duration::zero());  // left by an earlier start of the same job
  ANTDT_RETURN_IF_ERROR(ensure_private_directory(socket_dir));
  RunControl control;
  control.job = options.job;
  control.jobd_socket = socket_dir + "/jobd.sock";
  control.agent_socket = socket_dir + "/agent.sock";
  control.state_dir = options.state_dir;

  const std::string log = options.run_dir + "/agent.log";
  std::vector<std::string> command = options.place;
  command.insert(command.end(),
                 {options.programs.agent, "--private", "--socket-dir", socket_dir,
                  "--orphan-timeout", keeper_patience(options.orphan_timeout), "--log-file", log});
  ANTDT_TRY(const pid_t pid, spawn_detached(command, log));
  AgentProcess agent(pid, socket_dir);
  control.agent_pid = pid;
  control.agent_start_time = process_start_time(pid).value_or(0);
  ANTDT_RETURN_IF_ERROR(wait_for_socket(agent, control.agent_socket, options, log));
  // Written before the job daemon runs, so that the job can be found if this process dies now.
  ANTDT_RETURN_IF_ERROR(write_control(options.run_dir, control));
  ANTDT_RETURN_IF_ERROR(order_job_daemon(context, control, options, log));
  ANTDT_RETURN_IF_ERROR(
      wait_for_job_daemon(context, agent, control, options, options.run_dir + "/jobd.log"));
  agent.keep();
  return control;
}

}  // namespace antdt::launcher
