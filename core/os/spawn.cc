#include "core/os/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/os/pipe.h"
#include "core/os/process.h"

namespace antdt {
namespace {

constexpr mode_t kUmask = 077;
constexpr int kNiceness = 5;

enum class Stage : int {
  kFork,  // the fork of an orphan
  kCgroup,
  kParent,
  kDescriptors,
  kGroups,
  kGroup,
  kUser,
  kPrivileges,
  kDirectory,
  kExecute,
};
struct Failure {
  Stage stage;
  int error_number;
};

// Everything that the child needs, prepared before the fork. Between fork and exec nothing may be
// allocated and no lock taken, because other threads of this process do not exist in the child.
struct Prepared {
  const Spawn& what;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::array<int, 3> standard;
  std::string directory;
  bool change_user;
  pid_t parent;
  int report;
};

void tell(int report, Stage stage) {
  const Failure failure{stage, errno};
  [[maybe_unused]] const ssize_t ignored = write(report, &failure, sizeof(failure));
}

[[noreturn]] void give_up(int report, Stage stage) {
  tell(report, stage);
  _exit(127);
}

void put_into(const char* file, const char* text, std::size_t size) {
  const int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t ignored = write(fd, text, size);
  close(fd);
}

// First copies the three descriptors, so that none is overwritten before it was copied. Then all
// descriptors that are not passed are closed when the program is executed.
void hand_over_descriptors(const Prepared& p) {
  std::array<int, 3> copies{};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    copies[i] = fcntl(p.standard[i], F_DUPFD_CLOEXEC, 3);
    if (copies[i] < 0) give_up(p.report, Stage::kDescriptors);
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (dup2(copies[i], static_cast<int>(i)) < 0) give_up(p.report, Stage::kDescriptors);
  }
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    give_up(p.report, Stage::kDescriptors);
  }
  for (const int fd : p.what.pass) {
    if (fcntl(fd, F_SETFD, 0) != 0) give_up(p.report, Stage::kDescriptors);
  }
}

// Uses the system calls directly: those of the C library wait for the parent's threads, which do
// not exist here.
void become_user(const Prepared& p) {
  const UserIdentity& user = *p.what.user;
  if (syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0) {
    give_up(p.report, Stage::kGroups);
  }
  if (syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) give_up(p.report, Stage::kGroup);
  // Leaving uid 0 clears the permitted and effective capabilities.
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) give_up(p.report, Stage::kUser);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(p.report, Stage::kPrivileges);
}

void join_groups(const Prepared& p) {
  if (p.what.group == ChildGroup::kSession) setsid();
  if (p.what.group == ChildGroup::kOwn) setpgid(0, 0);
  constexpr char kSelf[] = "0";
  if (p.what.cgroup_procs >= 0 && write(p.what.cgroup_procs, kSelf, 1) != 1) {
    tell(p.report, Stage::kCgroup);  // the program goes on outside the cgroup
  }
}

void yield_to_others() {
  if (nice(kNiceness) == -1) errno = 0;
  constexpr char kFirst[] = "1000";
  put_into("/proc/self/oom_score_adj", kFirst, sizeof(kFirst) - 1);
}

[[noreturn]] void run_child(const Prepared& p) {
  join_groups(p);
  if (p.what.yields) yield_to_others();
  hand_over_descriptors(p);
  if (p.change_user) become_user(p);
  // Done after the change of user, which clears it.
  if (p.what.dies_with_us) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(p.report, Stage::kParent);
    if (getppid() != p.parent) _exit(127);  // the parent died before that took effect
  }
  if (p.what.user) umask(kUmask);
  if (!p.directory.empty() && chdir(p.directory.c_str()) != 0) {
    give_up(p.report, Stage::kDirectory);
  }
  reset_signals_for_child();
  restore_open_files_limit_for_child();
  execvpe(p.what.program.c_str(), p.argv.data(), p.envp.data());
  give_up(p.report, Stage::kExecute);
}

[[noreturn]] void start_orphan(const Prepared& p) {
  const pid_t pid = fork();
  if (pid == 0) run_child(p);
  if (pid < 0) tell(p.report, Stage::kFork);
  _exit(0);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 2);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

std::vector<char*> own_environment() {
  std::vector<char*> list;
  for (char** variable = environ; *variable != nullptr; ++variable) list.push_back(*variable);
  list.push_back(nullptr);
  return list;
}

// If the program was executed, nothing arrives, because exec closed the end of the pipe.
std::optional<Failure> read_failure(int report) {
  Failure failure{};
  ssize_t got = 0;
  do got = read(report, &failure, sizeof(failure));
  while (got < 0 && errno == EINTR);
  if (got != sizeof(failure)) return std::nullopt;
  return failure;
}

std::string why_not_executed(const Spawn& what, int error_number) {
  const std::string& program = what.program;
  std::string text = "cannot execute " + program;
  if (what.user) text += fmt::format(" as the user {}", what.user->name);
  if (error_number != ENOENT) return text;
  if (program.find('/') == std::string::npos) {
    const char* path = std::getenv("PATH");
    text += fmt::format(" (looked for in PATH={})", path == nullptr ? "" : path);
  } else if (access(program.c_str(), F_OK) == 0) {
    text += " (the file is there: the interpreter that it names is not)";
  }
  return text;
}

tl::unexpected<Error> explain(const Failure& failure, const Prepared& p) {
  const std::string& program = p.what.program;
  const auto error = [&](ErrorKind kind, const std::string& tried) {
    return fail_errno(kind, failure.error_number, tried);
  };
  switch (failure.stage) {
    case Stage::kFork:
      return error(ErrorKind::kIo, "starting a process for " + program);
    case Stage::kCgroup:
    case Stage::kParent:
      return error(ErrorKind::kIo, "cannot set up " + program);
    case Stage::kDescriptors:
      return error(ErrorKind::kIo, "handing descriptors to " + program);
    case Stage::kGroups:
      return error(ErrorKind::kIo, fmt::format("taking on the groups of the user {} (CAP_SETGID)",
                                               p.what.user->name));
    case Stage::kGroup:
      return error(ErrorKind::kIo, fmt::format("taking on the group {} of the user {} (CAP_SETGID)",
                                               p.what.user->gid, p.what.user->name));
    case Stage::kUser:
      return error(ErrorKind::kIo, fmt::format("becoming the user {} (uid {}; CAP_SETUID)",
                                               p.what.user->name, p.what.user->uid));
    case Stage::kPrivileges:
      return error(ErrorKind::kIo,
                   fmt::format("giving up all rights but those of the user {}", p.what.user->name));
    case Stage::kDirectory:
      return error(ErrorKind::kUsage, "cannot enter the working directory " + p.directory);
    case Stage::kExecute:
      break;
  }
  return error(ErrorKind::kUsage, why_not_executed(p.what, failure.error_number));
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Whether the child said something or began to execute the program, for which this call waits; not
// so if it was stopped. Once the child has become another user's, that user may stop it, and would
// hold this process up for as long as the user likes.
bool gets_further(pid_t child, int report) {
  constexpr int kLookMs = 10;
  for (pollfd item{report, POLLIN, 0}; poll(&item, 1, kLookMs) <= 0;) {
    siginfo_t seen{};
    constexpr int kStoppedNow = WSTOPPED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, static_cast<id_t>(child), &seen, kStoppedNow) == 0 && seen.si_pid == child) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<Spawned> spawn(const Spawn& what) {
  Pipe report;
  const OwnedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.is_open() || !report.open()) {
    return fail_errno(ErrorKind::kIo, errno, "opening what is needed to start " + what.program);
  }
  const auto or_null = [&null](int fd) { return fd < 0 ? null.get() : fd; };
  Prepared prepared{.what = what,
                    .argv = pointers(what.arguments),
                    .envp = what.environment ? pointers(*what.environment) : own_environment(),
                    .standard = {or_null(what.standard_input), or_null(what.standard_output),
                                 or_null(what.standard_error)},
                    .directory = what.directory.empty() && what.user ? "/" : what.directory,
                    .change_user = what.user && !what.user->is_own(),
                    .parent = getpid(),
                    .report = report.write.get()};
  prepared.argv.insert(prepared.argv.begin(), const_cast<char*>(what.program.c_str()));
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(ErrorKind::kIo, errno, "starting a process for " + what.program);
  if (pid == 0) {
    if (what.is_orphan) start_orphan(prepared);
    run_child(prepared);
  }
  report.write.close();
  Spawned spawned{what.is_orphan ? 0 : pid};
  std::optional<Failure> failure;
  do {
    if (prepared.change_user && !gets_further(pid, report.read.get())) {
      kill(pid, SIGKILL);
      reap(pid);
      return fail(ErrorKind::kObstructed,
                  "cannot execute {} as the user {}: a process of that user stopped it before it "
                  "began",
                  what.program, what.user->name);
    }
    failure = read_failure(report.read.get());
    if (failure && failure->stage == Stage::kCgroup) spawned.cgroup_error = failure->error_number;
  } while (failure && failure->stage == Stage::kCgroup);
  if (failure || what.is_orphan) reap(pid);
  if (failure) return explain(*failure, prepared);
  return spawned;
}

std::vector<std::string> user_environment(const UserIdentity& user) {
  return {"HOME=" + user.home, "USER=" + user.name, "LOGNAME=" + user.name,
          "SHELL=" + (user.shell.empty() ? std::string("/bin/sh") : user.shell)};
}

}  // namespace antdt
