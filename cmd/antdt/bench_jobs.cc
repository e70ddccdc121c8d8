#include "cmd/antdt/bench_jobs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

namespace antdt::bench {
namespace {

// Signals are waited for, and a child ends with one: nothing is polled.
class Waiting {
 public:
  Waiting() {
    sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Waiting() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  [[nodiscard]] int next() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

// In a process group of its own: a terminal's signal comes once, through us.
Result<pid_t> spawn_job(const BenchJob& job) {
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  std::vector<char*> argv;
  for (std::string& text : command) argv.push_back(text.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, job.output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return fail_errno(ErrorKind::kIo, error, "start " + command[0]);
  return pid;
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<int> run_jobs(const std::vector<BenchJob>& jobs, std::size_t at_once,
                     const std::function<void(std::size_t, int)>& ended) {
  const Waiting waiting;
  std::map<pid_t, std::size_t> running;
  std::size_t next = 0;
  int stopped = 0;
  Status started;
  while (true) {
    while (stopped == 0 && started && next < jobs.size() && running.size() < at_once) {
      const auto pid = spawn_job(jobs[next]);
      if (pid) {
        running[*pid] = next++;
      } else {
        started = tl::unexpected(pid.error());
      }
    }
    if (running.empty()) break;
    const int signal = waiting.next();
    if (signal != SIGCHLD) {
      stopped = signal;
      for (const auto& [pid, index] : running) kill(pid, signal);
    }
    int status = 0;
    for (auto it = running.begin(); it != running.end();) {
      if (waitpid(it->first, &status, WNOHANG) != it->first) {
        ++it;
        continue;
      }
      ended(it->second, exit_code(status));
      it = running.erase(it);
    }
  }
  ANTDT_RETURN_IF_ERROR(started);
  return stopped == 0 ? 0 : 128 + stopped;
}

}  // namespace antdt::bench
