#include "core/os/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace antdt {
namespace {

// A child that waits to be killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_NAME, ") odd (name");
    for (;;) pause();
  }
  ~Child() { reap(); }
  void kill() const { ::kill(pid_, SIGKILL); }
  int reap() {
    int status = 0;
    if (pid_ <= 0) return status;
    kill();
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessTest, StartTimeStaysAndTellsAProcessFromItsSuccessor) {
  Child child;
  const auto start = process_start_time(child.pid());
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(process_start_time(child.pid()).value(), *start);
  EXPECT_GE(*start, process_start_time(getpid()).value());
  EXPECT_TRUE(process_alive(child.pid(), *start));
  EXPECT_FALSE(process_alive(child.pid(), *start + 1));
}

TEST(ProcessTest, AZombieIsNotAliveAndAReapedOneIsUnknown) {
  Child child;
  const pid_t pid = child.pid();
  const auto start = process_start_time(pid);
  ASSERT_TRUE(start);
  const auto pidfd = open_pidfd(pid);
  ASSERT_TRUE(pidfd) << pidfd.error().message;
  child.kill();
  pollfd item{*pidfd, POLLIN, 0};
  EXPECT_EQ(poll(&item, 1, 20000), 1);
  close(*pidfd);
  EXPECT_FALSE(process_alive(pid, *start));
  child.reap();
  EXPECT_FALSE(process_alive(pid, *start));
  const auto gone = process_start_time(pid);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kUnreachable);
  EXPECT_FALSE(open_pidfd(pid));
}

TEST(ProcessTest, SignalsOnlyTheProcessThatIsMeant) {
  Child child;
  const auto start = process_start_time(child.pid());
  ASSERT_TRUE(start);
  const Status wrong = signal_process(child.pid(), *start + 1, SIGTERM);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUnreachable);
  EXPECT_TRUE(process_alive(child.pid(), *start));
  ASSERT_TRUE(signal_process(child.pid(), *start, SIGTERM));
  int status = 0;
  ASSERT_EQ(waitpid(child.pid(), &status, 0), child.pid());
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(ProcessTest, AChildGetsSignalsThatItsParentBlocksAndIgnores) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto old_handler = std::signal(SIGPIPE, SIG_DFL);
  ignore_sigpipe();
  const pid_t child = fork();
  if (child == 0) {
    reset_signals_for_child();
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    struct sigaction pipe_action {};
    sigaction(SIGPIPE, nullptr, &pipe_action);
    _exit(sigismember(&now, SIGUSR1) == 0 && pipe_action.sa_handler == SIG_DFL ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::signal(SIGPIPE, old_handler);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace antdt
