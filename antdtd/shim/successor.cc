#include "antdtd/shim/successor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

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

// A process that comes too late finds the lock taken. Other failures are tried again, and are in
// the log if there is one. If the environment file was removed, the job is over and no agent is
// started; but if this shim is still there at the second try, only that file is gone.
void AgentSuccessor::start() {
  const Result<std::string> environment = read_file(environment_file(options_.lock));
  if (!environment) {
    if (++vain_starts_ == 2) tell(environment.error().message);
    return;
  }
  vain_starts_ = 0;
  [[maybe_unused]] const Status started =
      start_as_orphan(options_.command, parse_environment(*environment), options_.log);
}

// The shim of the job daemon says it for all.
void AgentSuccessor::tell(const std::string& why) const {
  if (options_.patience > Duration::zero()) return;
  const OwnedFd log(open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line = fmt::format(
      "antdt-shim: the agent of this job is gone and cannot be started again: {}. The job's "
      "processes end when nobody has claimed them for their orphan timeout; 'antdt run --resume' "
      "goes on from the last checkpoint. Something removes files of running jobs: exclude {} from "
      "it, or set XDG_RUNTIME_DIR to a directory that is not cleaned\n",
      why, options_.lock.substr(0, options_.lock.rfind('/')));
  [[maybe_unused]] const auto written = write(log.get(), line.data(), line.size());
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

// While an object of this class lives, this process does not adopt orphans: the agent that is
// started must not become a part of the tree that this shim kills. An orphan of the worker that is
// missed in these milliseconds is found by its environment instead.
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

}  // namespace

Status start_as_orphan(const std::vector<std::string>& command,
                       const std::vector<std::string>& environment, const std::string& log) {
  const OwnedFd out(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  what.environment = environment;
  what.standard_output = out.get();  // /dev/null if there can be no log
  what.standard_error = out.get();
  what.group = ChildGroup::kSession;
  what.is_orphan = true;
  const NotAReaper until_it_is_an_orphan;
  ANTDT_RETURN_IF_ERROR(spawn(what));
  return {};
}

}  // namespace antdt::antdtd
