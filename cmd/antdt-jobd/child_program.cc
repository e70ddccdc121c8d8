#include "cmd/antdt-jobd/child_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "core/pipe.h"
#include "core/process.h"

namespace antdt::jobd {
namespace {

constexpr int kPipeBytes = 1 << 20;  // a view of thousands of workers

void put_into(const char* file, const char* text, std::size_t size) {
  const int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t ignored = write(fd, text, size);
  close(fd);
}

// Between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* argv, const char* directory, int in, int out, int err,
                         int report, pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that took effect
  if (nice(5) == -1) errno = 0;
  put_into("/proc/self/oom_score_adj", "1000", 4);
  const bool ready = dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
                     dup2(err, STDERR_FILENO) >= 0 && (*directory == '\0' || chdir(directory) == 0);
  if (ready) {
    reset_signals_for_child();
    execv(argv[0], argv);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(report, &error, sizeof(error));
  _exit(127);
}

void make_non_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

Result<ChildProgram> ChildProgram::start(const std::vector<std::string>& command,
                                         const std::string& directory) {
  Pipe in, out, err, report;
  if (!in.open() || !out.open() || !err.open() || !report.open()) {
    return fail_errno(ErrorKind::kIo, errno, "cannot make pipes for " + command.front());
  }
  static_cast<void>(
      fcntl(in.write.get(), F_SETPIPE_SZ, kPipeBytes));  // may be more than is allowed
  std::vector<std::string> arguments = command;
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(ErrorKind::kIo, errno, "cannot start " + command.front());
  if (pid == 0) {
    become(argv.data(), directory.c_str(), in.read.get(), out.write.get(), err.write.get(),
           report.write.get(), parent);
  }
  report.write.close();
  int error = 0;
  ssize_t got = 0;
  do got = read(report.read.get(), &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return fail_errno(ErrorKind::kUsage, error, "cannot execute " + command.front());
  }
  for (const OwnedFd* fd : {&in.write, &out.read, &err.read}) make_non_blocking(fd->get());
  return ChildProgram(pid, std::move(in.write), std::move(out.read), std::move(err.read));
}

ChildProgram::ChildProgram(ChildProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      ended_(std::move(other.ended_)) {}

ChildProgram::~ChildProgram() {
  if (pid_ >= 0 && !ended_) kill(-pid_, SIGKILL);
}

Result<std::size_t> ChildProgram::write(std::string_view bytes) {
  while (true) {
    const ssize_t put = ::write(in_.get(), bytes.data(), bytes.size());
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return fail_errno(ErrorKind::kIo, errno, "it reads no more");
  }
}

Result<std::string> ChildProgram::read_output(std::size_t most) {
  std::string bytes(most, '\0');
  while (true) {
    const ssize_t got = read(out_.get(), bytes.data(), bytes.size());
    if (got == 0) return fail(ErrorKind::kIo, "it has closed its standard output");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return fail_errno(ErrorKind::kIo, errno, "its output");
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
}

std::string ChildProgram::read_errors(std::size_t most) {
  std::string bytes(most, '\0');
  const ssize_t got = read(err_.get(), bytes.data(), bytes.size());
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

bool reaped(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; }

std::optional<std::string> ChildProgram::ended() {
  siginfo_t seen{};
  if (ended_ || waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      seen.si_pid != pid_) {
    return ended_;
  }
  // What it has started goes with it, while its id cannot be another's yet.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                               : fmt::format("ended with code {}", WEXITSTATUS(status));
  return ended_;
}

}  // namespace antdt::jobd
