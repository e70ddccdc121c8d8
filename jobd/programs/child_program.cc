#include "jobd/programs/child_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "core/os/pipe.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

namespace antdt::jobd {
namespace {

constexpr int kPipeBytes = 1 << 20;  // large enough for a view of thousands of workers

void make_non_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

Result<ChildProgram> ChildProgram::start(const std::vector<std::string>& command,
                                         const std::string& directory) {
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) {
    return fail_errno(ErrorKind::kIo, errno, "cannot make pipes for " + command.front());
  }
  static_cast<void>(
      fcntl(in.write.get(), F_SETPIPE_SZ, kPipeBytes));  // may be more than is allowed
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  what.standard_input = in.read.get();
  what.standard_output = out.write.get();
  what.standard_error = err.write.get();
  what.directory = directory;
  what.group = ChildGroup::kSession;
  what.dies_with_us = true;
  what.yields = true;
  ANTDT_TRY(const Spawned started, spawn(what));
  for (const OwnedFd* fd : {&in.write, &out.read, &err.read}) make_non_blocking(fd->get());
  return ChildProgram(started.pid, std::move(in.write), std::move(out.read), std::move(err.read));
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
  // The processes that it started are ended with it, while its id cannot belong to another process
  // yet.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                               : fmt::format("ended with code {}", WEXITSTATUS(status));
  return ended_;
}

}  // namespace antdt::jobd
