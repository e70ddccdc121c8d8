#include "bench/antdt/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/spawn.h"

namespace antdt::bench {
namespace {

Result<pid_t> start(Spawn what, const std::string& output, bool errors_too) {
  const OwnedFd out(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + output);
  what.standard_output = out.get();
  what.standard_error = errors_too ? out.get() : STDERR_FILENO;
  ANTDT_TRY(const Spawned started, spawn(what));
  return started.pid;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> env;
  for (char** e = environ; *e != nullptr; ++e) env.emplace_back(*e);
  return env;
}

}  // namespace

Result<BenchProcess> BenchProcess::start(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment,
                                         std::string output) {
  Spawn what;
  what.program = std::filesystem::read_symlink("/proc/self/exe").string();
  what.arguments = arguments;
  what.environment = own_environment();
  what.environment->insert(what.environment->end(), environment.begin(), environment.end());
  ANTDT_TRY(const pid_t pid, antdt::bench::start(std::move(what), output, false));
  return BenchProcess(pid, std::move(output));
}

Result<BenchProcess> BenchProcess::start_program(std::vector<std::string> command,
                                                 std::string output) {
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  ANTDT_TRY(const pid_t pid, antdt::bench::start(std::move(what), output, true));
  return BenchProcess(pid, std::move(output));
}

BenchProcess::BenchProcess(BenchProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}

BenchProcess::~BenchProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

bool BenchProcess::ended() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

Result<std::string> BenchProcess::printed() {
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  ANTDT_TRY(std::string text, read_file(output_));
  if (status == 0) return text;
  return fail(ErrorKind::kInternal, "a process of the bench failed (status {})", status);
}

}  // namespace antdt::bench
