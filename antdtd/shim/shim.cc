#include "antdtd/shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "antdtd/processes/kill_rounds.h"
#include "antdtd/shim/binding.h"
#include "antdtd/shim/cgroup.h"
#include "antdtd/shim/claim_file.h"
#include "antdtd/shim/linger.h"
#include "antdtd/shim/out_of_memory.h"
#include "antdtd/shim/process_tree.h"
#include "antdtd/shim/shim_files.h"
#include "antdtd/shim/shim_log.h"
#include "antdtd/shim/shim_spawn.h"
#include "core/os/fs.h"
#include "core/os/process.h"

namespace antdt::antdtd {
namespace {

constexpr int kNothingStarted = 125;
constexpr Duration kLogPatience = std::chrono::seconds(2);
constexpr Duration kCgroupPatience = std::chrono::seconds(1);

ProcessIdentity identity_of(pid_t pid) { return {pid, process_start_time(pid).value_or(0)}; }

ExitStatus to_exit_status(const siginfo_t& ended) {
  ExitStatus status;
  (ended.si_code == CLD_EXITED ? status.code : status.signal) = ended.si_status;
  return status;
}

// The agent reads one line from this standard output; after that nobody reads it.
void tell_agent_started(pid_t worker) {
  const std::string line = fmt::format("started {}\n", worker);
  [[maybe_unused]] const ssize_t ignored = write(STDOUT_FILENO, line.data(), line.size());
}

void leave_standard_output() {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDOUT_FILENO);
}

// Whether the agent touches the claim file. The file's times are compared only with each other, so
// a step of the wall clock kills nothing.
class ClaimWatch {
 public:
  ClaimWatch(std::string path, Duration timeout, MonoTime now)
      : path_(std::move(path)), timeout_(timeout), changed_(now) {}

  void look(MonoTime now) {
    struct stat info {};
    const bool there = stat(path_.c_str(), &info) == 0;
    removed_ = !there && errno == ENOENT;
    const std::pair seen(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    if (there && seen != last_) {
      last_ = seen;
      changed_ = now;
    }
  }
  // A file that was removed is never touched again.
  [[nodiscard]] bool removed() const { return removed_; }
  [[nodiscard]] Duration unclaimed(MonoTime now) const { return now - changed_; }
  [[nodiscard]] bool abandoned(MonoTime now) const {
    return removed_ || (timeout_ > Duration::zero() && unclaimed(now) >= timeout_);
  }
  [[nodiscard]] Duration period() const {
    if (timeout_ <= Duration::zero()) return std::chrono::seconds(1);
    return std::clamp<Duration>(timeout_ / 4, std::chrono::milliseconds(50),
                                std::chrono::seconds(1));
  }

 private:
  std::string path_;
  Duration timeout_;
  bool removed_ = false;
  MonoTime changed_;
  std::pair<time_t, long> last_{};
};

// One of the worker's two output streams.
class Output {
 public:
  Output(int fd, std::string path, std::uint64_t max_bytes)
      : fd_(fd), log_(std::move(path), max_bytes) {}

  [[nodiscard]] pollfd poll_item() const { return {fd_, POLLIN, 0}; }
  // Reads what is there, up to a bound so that the other stream gets its turn. Returns whether
  // there may be more.
  bool drain() {
    constexpr int kReads = 16;
    static constexpr std::size_t kChunk = 65536;
    std::array<char, kChunk> buffer;
    for (int n = 0; n < kReads && fd_ >= 0; ++n) {
      const ssize_t got = read(fd_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return false;
      if (got == 0) {
        close(std::exchange(fd_, -1));
        return false;
      }
      say({buffer.data(), static_cast<std::size_t>(got)});
    }
    return fd_ >= 0;
  }
  void say(std::string_view text) {
    log_.append(text);
    tail_.append(text.substr(text.size() - std::min(text.size(), kLastLinesBytes)));
    if (tail_.size() > 2 * kLastLinesBytes) tail_.erase(0, tail_.size() - kLastLinesBytes);
  }
  [[nodiscard]] bool finish(Duration wait) { return log_.finish(wait); }
  [[nodiscard]] std::string last_lines() const {
    return tail_.substr(tail_.size() - std::min(tail_.size(), kLastLinesBytes));
  }

 private:
  int fd_;
  ShimLog log_;
  std::string tail_;
};

class Shim {
 public:
  Shim(const ShimOptions& options, const SpawnedWorker& worker, int signals,
       const std::string& unbound, MonoTime now)
      : worker_(worker.pid),
        keep_orphans_(options.keep_orphans),
        cgroup_(options.cgroup),
        signals_(signals),
        claim_(claim_file(options.process_dir), options.orphan_timeout, now),
        agent_(options.agent),
        out_(worker.out, options.log_prefix + ".out", options.log_bytes),
        err_(worker.err, options.log_prefix + ".err", options.log_bytes) {
    if (!unbound.empty()) err_.say(fmt::format("[antdt: {}]\n", unbound));
    if (worker.cgroup_error == 0) return;
    err_.say(fmt::format("[antdt: it runs outside its cgroup {}: {}]\n", cgroup_,
                         std::strerror(worker.cgroup_error)));
  }

  // Runs until no process of the tree is left. Returns how the worker ended.
  ExitStatus run() {
    look_for_the_agent(clock_.now());
    while (!nobody_left_) turn();
    while (out_.drain() || err_.drain()) {
    }
    const MonoTime until = clock_.now() + kLogPatience;
    [[maybe_unused]] const bool out_written = out_.finish(kLogPatience);
    [[maybe_unused]] const bool err_written =
        err_.finish(std::max(Duration::zero(), until - clock_.now()));
    status_->last_lines = err_.last_lines();
    status_->orphaned = unclaimed_;
    status_->oom = oom_evidence(*status_, memory_events(cgroup_));
    remove_cgroup(cgroup_, kCgroupPatience);
    return *status_;
  }

 private:
  void turn() {
    // While it kills, it does not look at the agent, whose end would be told again and again.
    std::array<pollfd, 4> items = {pollfd{signals_, POLLIN, 0}, out_.poll_item(), err_.poll_item(),
                                   pollfd{killing_ ? -1 : agent_.agent_fd(), POLLIN, 0}};
    const Duration wait = killing_ ? rounds_.pause() : claim_.period();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
    poll(items.data(), items.size(), static_cast<int>(ms));
    read_signals();
    if (items[1].revents != 0) out_.drain();
    if (items[2].revents != 0) err_.drain();
    reap();
    if (!killing_) look_for_the_agent(clock_.now());
    if (status_ && !terminating_) killing_ = true;
    if (killing_ && (nobody_left_ || rounds_.due(clock_.now()))) kill_tree();
  }

  void look_for_the_agent(MonoTime now) {
    claim_.look(now);
    if (claim_.abandoned(now)) {
      err_.say("[antdt: no agent has claimed this process: killed]\n");
      unclaimed_ = killing_ = true;
    } else {
      agent_.tend(claim_.unclaimed(now), now);
    }
  }

  void read_signals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGUSR1) killing_ = true;
      if (info.ssi_signo == SIGTERM) terminate_tree();
    }
  }

  void reap() {
    for (;;) {
      siginfo_t ended{};
      const int seen = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
      if (seen != 0 && errno == EINTR) continue;
      nobody_left_ = seen != 0;
      if (seen != 0 || ended.si_pid == 0) return;
      if (ended.si_pid == worker_) worker_ended(ended);
      waitpid(ended.si_pid, nullptr, 0);
    }
  }

  // The worker is not reaped yet, so its pid and its group's id cannot belong to other processes.
  void worker_ended(const siginfo_t& ended) {
    if (!terminating_ || killing_) kill_group();
    status_ = to_exit_status(ended);
  }

  // Kills processes that the worker left to the system, if this process is not their subreaper.
  void kill_group() const {
    if (!keep_orphans_ && !status_) kill(-worker_, SIGKILL);
  }

  void terminate_tree() {
    terminating_ = true;
    signal_descendants(getpid(), SIGTERM);
    signal_descendants(getpid(), SIGCONT);  // a stopped process would not act on the signal
  }

  void kill_tree() {
    kill_cgroup(cgroup_);
    kill_group();
    rounds_.done(signal_descendants(getpid(), SIGKILL), clock_.now());
    reap();
  }

  SteadyClock clock_;
  pid_t worker_;
  bool keep_orphans_;
  std::string cgroup_;
  int signals_;
  ClaimWatch claim_;
  AgentSuccessor agent_;
  Output out_;
  Output err_;
  std::optional<ExitStatus> status_;
  KillRounds rounds_;
  bool terminating_ = false;
  bool killing_ = false;
  bool unclaimed_ = false;  // why it is killed
  bool nobody_left_ = false;
};

// What is blocked here does not affect children: spawn_worker resets it.
int take_signals() {
  ignore_sigpipe();
  std::signal(SIGCHLD, SIG_DFL);  // if it were ignored, there would be no exit status
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD, SIGHUP, SIGINT}) sigaddset(&set, signal);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int save_exit(const ShimOptions& options, const ExitStatus& status) {
  if (save_exit_file(options.process_dir, status)) return 0;
  return status.signal != 0 ? 128 + status.signal : status.code;
}

int report_spawn_failure(const ShimOptions& options, const Error& error) {
  ExitStatus status;
  status.error = error.message;
  ShimLog log(options.log_prefix + ".err", options.log_bytes);
  log.append("[antdt: " + error.message + "]\n");
  [[maybe_unused]] const bool written = log.finish(kLogPatience);
  return save_exit(options, status) == 0 ? 0 : kNothingStarted;
}

// Claims that cannot be opened are the agent's alone. One that another agent is taking belongs to
// no process of this agent any more, nor to the agent.
Result<std::vector<ClaimFile>> join_claims(const std::vector<std::string>& paths) {
  std::vector<ClaimFile> joined;
  for (const std::string& path : paths) {
    auto claim = ClaimFile::join(path);
    if (claim) {
      joined.push_back(std::move(*claim));
    } else if (claim.error().kind == ErrorKind::kRefused) {
      return fail(ErrorKind::kRefused, "another agent of this machine leases its device: {}",
                  claim.error().message);
    }
  }
  return joined;
}

// `lock` belongs to this process and ends with it: the child must not hold it.
void stay_for_the_agent(const ShimOptions& options, PidLock lock) {
  if (options.agent.command.empty() || fork() != 0) return;
  { const PidLock closed = std::move(lock); }
  reset_signals_for_child();
  linger(options.process_dir, options.agent);
  _exit(0);
}

}  // namespace

int run_shim(const ShimOptions& options) {
  setsid();
  const int signals = take_signals();
  if (signals < 0) return kNothingStarted;
  if (options.keep_orphans) prctl(PR_SET_CHILD_SUBREAPER, 1);
  Result<PidLock> lock = PidLock::take(options.process_dir);
  // Another process holds the lock, or an agent has given this process up meanwhile.
  if (!lock || access(exit_file(options.process_dir).c_str(), F_OK) == 0) return kNothingStarted;

  const auto claims = join_claims(options.device_claims);
  if (!claims) return report_spawn_failure(options, claims.error());
  const std::string unbound = bind_to(options.cpus, options.numa_node);  // the worker inherits it
  const Result<SpawnedWorker> worker = spawn_worker(options.command, options.working_directory,
                                                    options.cgroup, options.cgroup_procs_fd);
  if (!worker) return report_spawn_failure(options, worker.error());
  Shim shim(options, *worker, signals, unbound, std::chrono::steady_clock::now());
  // Without this file a later agent knows from the lock that the shim lives, but not its pid. The
  // present agent has been told.
  [[maybe_unused]] const Status written =
      lock->write({identity_of(getpid()), identity_of(worker->pid)});
  tell_agent_started(worker->pid);
  leave_standard_output();
  const int code = save_exit(options, shim.run());
  if (!options.keep_orphans) stay_for_the_agent(options, std::move(*lock));
  return code;
}

}  // namespace antdt::antdtd
