#include "antdtd/shim_spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "antdtd/cgroup.h"
#include "core/pipe.h"
#include "core/process.h"

namespace antdt::antdtd {
namespace {

enum class Stage : int { kCgroup, kSetUp, kDirectory, kExecute };
// What the child writes when it does not get as far as the program, and (kCgroup)
// when it goes on outside its cgroup.
struct Failure {
  Stage stage;
  int error_number;
};

void tell(int report, Stage stage) {
  const Failure failure{stage, errno};
  [[maybe_unused]] const ssize_t ignored = write(report, &failure, sizeof(failure));
}

[[noreturn]] void give_up(int report, Stage stage) {
  tell(report, stage);
  _exit(127);
}

// Between fork and exec: only what is safe there.
[[noreturn]] void become_worker(const char* program, char* const* argv, const char* directory,
                                const char* cgroup_procs, int cgroup_procs_fd, int out, int err,
                                int report, pid_t parent) {
  setsid();
  if (*cgroup_procs != '\0' && !enter_cgroup(cgroup_procs, cgroup_procs_fd)) {
    tell(report, Stage::kCgroup);
  }
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(report, Stage::kSetUp);
  if (getppid() != parent) _exit(127);  // it died before that took effect
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
      dup2(err, STDERR_FILENO) < 0) {
    give_up(report, Stage::kSetUp);
  }
  if (*directory != '\0' && chdir(directory) != 0) give_up(report, Stage::kDirectory);
  reset_signals_for_child();
  execvp(program, argv);
  give_up(report, Stage::kExecute);
}

// A name without a slash may be a program that is installed with this one, as
// antdt-trainer is; otherwise it is for PATH.
std::string installed_here(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || name.find('/') != std::string::npos) return name;
  const std::string path = self.parent_path() / name;
  return access(path.c_str(), X_OK) == 0 ? path : name;
}

// Nothing once the program runs.
std::optional<Failure> read_failure(int report) {
  Failure failure{};
  ssize_t got = 0;
  do got = read(report, &failure, sizeof(failure));
  while (got < 0 && errno == EINTR);
  if (got != sizeof(failure)) return std::nullopt;
  return failure;
}

tl::unexpected<Error> explain(const Failure& failure, const std::string& program,
                              const std::string& directory) {
  switch (failure.stage) {
    case Stage::kSetUp:
      return fail_errno(ErrorKind::kIo, failure.error_number, "cannot set up " + program);
    case Stage::kDirectory:
      return fail_errno(ErrorKind::kUsage, failure.error_number,
                        "cannot enter the working directory " + directory);
    case Stage::kCgroup:
    case Stage::kExecute:
      break;
  }
  const bool has_path = program.find('/') != std::string::npos;
  std::string what = "cannot execute " + program;
  if (failure.error_number == ENOENT && !has_path) {
    const char* path = std::getenv("PATH");
    what += fmt::format(" (looked for in PATH={})", path == nullptr ? "" : path);
  } else if (failure.error_number == ENOENT && access(program.c_str(), F_OK) == 0) {
    what += " (the file is there: the interpreter that it names is not)";
  }
  return fail_errno(ErrorKind::kUsage, failure.error_number, what);
}

}  // namespace

Result<SpawnedWorker> spawn_worker(const std::vector<std::string>& command,
                                   const std::string& working_directory, const std::string& cgroup,
                                   int cgroup_procs_fd) {
  const OwnedFd procs(cgroup_procs_fd);
  if (procs.is_open()) fcntl(procs.get(), F_SETFD, FD_CLOEXEC);
  Pipe out;
  Pipe err;
  Pipe report;
  if (!out.open() || !err.open() || !report.open()) {
    return fail_errno(ErrorKind::kIo, errno, "making pipes for " + command.front());
  }
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const std::string program = installed_here(command.front());
  const std::string cgroup_procs = cgroup.empty() ? "" : cgroup + "/cgroup.procs";
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    return fail_errno(ErrorKind::kIo, errno, "starting a process for " + command.front());
  if (pid == 0) {
    become_worker(program.c_str(), argv.data(), working_directory.c_str(), cgroup_procs.c_str(),
                  procs.get(), out.write.get(), err.write.get(), report.write.get(), parent);
  }
  report.write.close();
  int cgroup_error = 0;
  while (const auto failure = read_failure(report.read.get())) {
    if (failure->stage != Stage::kCgroup)
      return explain(*failure, command.front(), working_directory);
    cgroup_error = failure->error_number;
  }
  for (const int fd : {out.read.get(), err.read.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
  return SpawnedWorker{pid, out.read.release(), err.read.release(), cgroup_error};
}

}  // namespace antdt::antdtd
