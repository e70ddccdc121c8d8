#include "bench/antdt/jobs.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "core/os/owned_fd.h"
#include "core/os/spawn.h"

namespace antdt::bench {
namespace {

// Waits for signals, one of which also announces the end of a child, so nothing is polled.
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

// The job gets a process group of its own, so that a terminal's signal reaches it only once,
// through this process.
Result<pid_t> spawn_job(const BenchJob& job) {
  const OwnedFd out(open(job.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out.is_open()) return fail_errno(ErrorKind::kIo, errno, "cannot write " + job.output);
  Spawn what;
  what.program = std::filesystem::read_symlink("/proc/self/exe").string();
  what.arguments = job.arguments;
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.group = ChildGroup::kOwn;
  ANTDT_TRY(const Spawned started, spawn(what));
  return started.pid;
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
