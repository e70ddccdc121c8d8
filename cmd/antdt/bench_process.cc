#include "cmd/antdt/bench_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "core/fs.h"

namespace antdt::bench {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

Result<pid_t> spawn(std::vector<std::string> command, std::vector<std::string> env,
                    const std::string& output, bool errors_too) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (errors_too) posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, nullptr,
                                pointers(command).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno(ErrorKind::kIo, error, "start " + command[0]);
  return pid;
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
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> env = own_environment();
  env.insert(env.end(), environment.begin(), environment.end());
  ANTDT_TRY(const pid_t pid, spawn(std::move(command), std::move(env), output, false));
  return BenchProcess(pid, std::move(output));
}

Result<BenchProcess> BenchProcess::start_program(std::vector<std::string> command,
                                                 std::string output) {
  ANTDT_TRY(const pid_t pid, spawn(std::move(command), own_environment(), output, true));
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
