#include "antdtd/successor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/fs.h"
#include "core/process.h"

namespace antdt::antdtd {

AgentWatch::Wish AgentWatch::look(bool alive, Duration unclaimed, MonoTime now) {
  if (alive) {
    gone_since_.reset();
    pause_ = kShortestPause;
    const bool hung = hung_after_ > Duration::zero() && unclaimed >= hung_after_;
    return hung ? Wish::kKill : Wish::kNothing;
  }
  if (!gone_since_) gone_since_ = now;
  if (now - *gone_since_ < patience_ || now < next_try_) return Wish::kNothing;
  next_try_ = now + pause_;
  pause_ = std::min(kLongestPause, pause_ * 2);
  return Wish::kStart;
}

AgentSuccessor::AgentSuccessor(SuccessorOptions options)
    : options_(std::move(options)), watch_(options_.patience, options_.hung_after) {}

AgentSuccessor::~AgentSuccessor() { watch(std::nullopt); }

void AgentSuccessor::tend(Duration unclaimed, MonoTime now) {
  if (options_.command.empty()) return;
  const std::optional<pid_t> owner = FileLock::owner(options_.lock);
  watch(owner);
  switch (watch_.look(owner.has_value(), unclaimed, now)) {
    case AgentWatch::Wish::kNothing:
      return;
    case AgentWatch::Wish::kStart:
      return start();
    case AgentWatch::Wish::kKill:
      if (const auto began = process_start_time(*owner)) {
        [[maybe_unused]] const Status killed = signal_process(*owner, *began, SIGKILL);
      }
  }
}

// Whoever comes too late finds the lock taken. What goes wrong otherwise is tried
// again, and is in the log if there is one. Without its environment no agent is
// started: it was removed, and the job is over.
void AgentSuccessor::start() const {
  const Result<std::string> environment = read_file(environment_file(options_.lock));
  if (!environment) return;
  [[maybe_unused]] const Status started =
      start_as_orphan(options_.command, parse_environment(*environment), options_.log);
}

void AgentSuccessor::watch(std::optional<pid_t> owner) {
  if (options_.patience > Duration::zero() && owner) return;
  const pid_t pid = owner.value_or(0);
  if (pid == watched_) return;
  if (agent_fd_ >= 0) close(std::exchange(agent_fd_, -1));
  watched_ = pid;
  if (pid != 0) agent_fd_ = open_pidfd(pid).value_or(-1);
}

// --------------------------------------------------------------- environment

std::string environment_file(const std::string& lock) {
  return lock.substr(0, lock.rfind('/') + 1) + "environment";
}

std::string format_environment(const std::vector<std::string>& environment) {
  std::string text;
  for (const std::string& entry : environment) text += entry + '\0';
  return text;
}

std::vector<std::string> parse_environment(std::string_view text) {
  std::vector<std::string> environment;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    environment.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return environment;
}

// ------------------------------------------------------------------ starting

namespace {

// Other threads of this process do not exist in its child: from here to exec
// only what is safe then.
[[noreturn]] void become(char* const* argv, char* const* environment, int null, int log,
                         int report) {
  setsid();
  reset_signals_for_child();
  if (dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
      dup2(log, STDERR_FILENO) >= 0) {
    execve(argv[0], argv, environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(report, &error, sizeof(error));
  _exit(127);
}

[[noreturn]] void start_grandchild(char* const* argv, char* const* environment, int null, int log,
                                   int report) {
  const pid_t pid = fork();
  if (pid == 0) become(argv, environment, null, log, report);
  const int error = errno;
  if (pid < 0) [[maybe_unused]]
    const ssize_t ignored = write(report, &error, sizeof(error));
  _exit(0);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// While one lives, this process does not adopt orphans: what is started must not
// become a part of the tree that this shim kills. An orphan of the worker's that
// falls into these milliseconds is found by its environment instead.
class NotAReaper {
 public:
  NotAReaper() {
    prctl(PR_GET_CHILD_SUBREAPER, &was_);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  ~NotAReaper() { prctl(PR_SET_CHILD_SUBREAPER, was_); }
  NotAReaper(const NotAReaper&) = delete;
  NotAReaper& operator=(const NotAReaper&) = delete;

 private:
  int was_ = 0;
};

// Nothing comes when the program was executed: the end of the pipe went with it.
Status read_report(int report, const std::string& program) {
  int error = 0;
  ssize_t got = 0;
  do got = read(report, &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  if (got != sizeof(error)) return {};
  return fail_errno(ErrorKind::kIo, error, "starting " + program);
}

}  // namespace

Status start_as_orphan(const std::vector<std::string>& command,
                       const std::vector<std::string>& environment, const std::string& log) {
  const std::vector<char*> argv = pointers(command);
  const std::vector<char*> envp = pointers(environment);
  std::array<int, 2> report{-1, -1};
  if (pipe2(report.data(), O_CLOEXEC) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "making a pipe to start " + command.front());
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) out = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const NotAReaper until_it_is_an_orphan;
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid == 0) start_grandchild(argv.data(), envp.data(), null, out, report[1]);
  for (const int fd : {null, out, report[1]}) close(fd);
  Status started;
  if (pid < 0) {
    started = fail_errno(ErrorKind::kIo, fork_error, "starting " + command.front());
  } else {
    started = read_report(report[0], command.front());
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(report[0]);
  return started;
}

}  // namespace antdt::antdtd
