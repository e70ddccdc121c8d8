#include "core/start_as.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/pipe.h"
#include "core/process.h"

namespace antdt {
namespace {

constexpr mode_t kUmask = 077;

enum class Stage : int { kDescriptors, kGroups, kGroup, kUser, kPrivileges, kExecute };
struct Failure {
  Stage stage;
  int error_number;
};

std::string words_of(Stage stage, const UserIdentity& user, const std::string& program) {
  switch (stage) {
    case Stage::kDescriptors:
      return "handing descriptors to " + program;
    case Stage::kGroups:
      return fmt::format("taking on the groups of the user {} (CAP_SETGID)", user.name);
    case Stage::kGroup:
      return fmt::format("taking on the group {} of the user {} (CAP_SETGID)", user.gid, user.name);
    case Stage::kUser:
      return fmt::format("becoming the user {} (uid {}; CAP_SETUID)", user.name, user.uid);
    case Stage::kPrivileges:
      return fmt::format("giving up all rights but those of the user {}", user.name);
    case Stage::kExecute:
      break;
  }
  return fmt::format("executing {} as the user {}", program, user.name);
}

// Made before the fork: between it and exec nothing may be allocated.
struct Prepared {
  const char* program;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::array<int, 3> standard;
  const std::vector<int>* pass;
  const UserIdentity* user;
  bool change_user;
  int report;
};

[[noreturn]] void give_up(int report, Stage stage) {
  const Failure failure{stage, errno};
  [[maybe_unused]] const ssize_t ignored = write(report, &failure, sizeof(failure));
  _exit(127);
}

// Copies first, so that none of the three is overwritten before it was taken; then all
// that is not handed over is closed when the program is executed.
void hand_over_descriptors(const Prepared& what) {
  std::array<int, 3> copies{};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    copies[i] = fcntl(what.standard[i], F_DUPFD_CLOEXEC, 3);
    if (copies[i] < 0) give_up(what.report, Stage::kDescriptors);
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (dup2(copies[i], static_cast<int>(i)) < 0) give_up(what.report, Stage::kDescriptors);
  }
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    give_up(what.report, Stage::kDescriptors);
  }
  for (const int fd : *what.pass) {
    if (fcntl(fd, F_SETFD, 0) != 0) give_up(what.report, Stage::kDescriptors);
  }
}

// The system calls themselves: those of the C library wait for the threads of the parent,
// which are not there any more.
void become(const Prepared& what) {
  const UserIdentity& user = *what.user;
  if (what.change_user) {
    if (syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0) {
      give_up(what.report, Stage::kGroups);
    }
    if (syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) {
      give_up(what.report, Stage::kGroup);
    }
    // Leaving uid 0 clears the permitted and effective capabilities.
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) {
      give_up(what.report, Stage::kUser);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(what.report, Stage::kPrivileges);
  }
}

[[noreturn]] void run_child(const Prepared& what) {
  hand_over_descriptors(what);
  become(what);
  umask(kUmask);
  if (chdir("/") != 0) give_up(what.report, Stage::kExecute);
  reset_signals_for_child();
  execve(what.program, what.argv.data(), what.envp.data());
  give_up(what.report, Stage::kExecute);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 2);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<pid_t> start_as(const UserIdentity& user, const StartAs& what) {
  Pipe report;
  const OwnedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.is_open() || !report.open()) {
    return fail_errno(ErrorKind::kIo, errno, "opening what is needed to start " + what.program);
  }
  const auto or_null = [&null](int fd) { return fd < 0 ? null.get() : fd; };
  Prepared prepared{
      what.program.c_str(),
      pointers(what.arguments),
      pointers(what.environment),
      {or_null(what.standard_input), or_null(what.standard_output), or_null(what.standard_error)},
      &what.pass,
      &user,
      !user.is_own(),
      report.write.get()};
  prepared.argv.insert(prepared.argv.begin(), const_cast<char*>(what.program.c_str()));
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(ErrorKind::kIo, errno, "starting a process for " + what.program);
  if (pid == 0) run_child(prepared);
  report.write.close();
  Failure failure{};
  ssize_t got = 0;
  do got = read(report.read.get(), &failure, sizeof(failure));
  while (got < 0 && errno == EINTR);
  if (got != sizeof(failure)) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail_errno(ErrorKind::kIo, failure.error_number,
                    words_of(failure.stage, user, what.program));
}

std::vector<std::string> user_environment(const UserIdentity& user) {
  return {"HOME=" + user.home, "USER=" + user.name, "LOGNAME=" + user.name,
          "SHELL=" + (user.shell.empty() ? std::string("/bin/sh") : user.shell)};
}

}  // namespace antdt
