#include "launcher/commands/run/ask_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"
#include "core/os/spawn.h"
#include "launcher/start/own_program.h"

namespace antdt::cli {

namespace {

// The program may index files as large as a disk.
constexpr int kPatienceMs = 600'000;

// The library's name is in every program that is linked with it.
Result<bool> has_kit(const std::string& program) {
  ANTDT_TRY(const std::string bytes, read_file(program));
  return bytes.find("libantdt-kit.so") != std::string::npos;
}

// Returns the exit status as waitpid() gives it. The program is killed if it takes too long.
Result<int> await_end(pid_t pid) {
  ANTDT_TRY(const int opened, open_pidfd(pid));
  const OwnedFd ended(opened);
  pollfd waited{ended.get(), POLLIN, 0};
  int found = 0;
  do {
    found = ::poll(&waited, 1, kPatienceMs);
  } while (found < 0 && errno == EINTR);
  if (found == 0) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (found == 0) {
    return fail(ErrorKind::kUsage, "it was asked with --check and did not answer within {} s",
                kPatienceMs / 1000);
  }
  return status;
}

Status ask(const std::vector<std::string>& command, const launcher::JobConfig& config) {
  const TempDir directory;
  const std::string job = directory / "job.json";
  const std::string said = directory / "said";
  ANTDT_RETURN_IF_ERROR(write_file_atomic(job, launcher::to_json(config), 0600));
  const OwnedFd out(::open(said.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + said);
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  what.arguments.insert(what.arguments.end(), {"--check", job});
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.directory = config.job.directory;
  what.dies_with_us = true;
  ANTDT_TRY(const Spawned started, spawn(what));
  ANTDT_TRY(const int status, await_end(started.pid));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  ANTDT_TRY(std::string text, read_file(said));
  while (text.ends_with('\n')) text.pop_back();
  if (!text.empty()) return fail(ErrorKind::kUsage, "{}", text);
  return fail(ErrorKind::kUsage,
              "`{} --check JOB` {} and printed nothing; run it by hand to see why",
              fmt::join(command, " "),
              WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                  : fmt::format("ended with code {}", WEXITSTATUS(status)));
}

}  // namespace

Status ask_program(const launcher::JobConfig& config) {
  if (!launcher::may_have_own_names(config)) return {};
  const std::vector<std::string>& command = config.roles.worker.command;
  ANTDT_TRY(const bool kit, has_kit(command.front()));
  if (kit) {
    const Status answer = ask(command, config);
    if (answer) return {};
    return fail(answer.error().kind, "{}: {}", command.front(), answer.error().message);
  }
  const auto unknown = launcher::unknown_names(config);
  if (unknown.empty()) return {};
  return fail(ErrorKind::kUsage, "{}: {} ({} is not made with the C++ kit)", unknown.front().key,
              unknown.front().text, command.front());
}

}  // namespace antdt::cli
