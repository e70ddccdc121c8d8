// A process that aborts says so and stays for a moment.
#include "trainer/c_api/abort_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace antdt::capi {
namespace {

using std::chrono::milliseconds;

class AbortWatch : public ::testing::Test {
 protected:
  AbortWatch() { EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK), 0); }
  ~AbortWatch() override {
    for (const int fd : pipe_) ::close(fd);
  }
  // How a child that does that ends.
  template <class Does>
  static int status_of(Does does) {
    const pid_t child = ::fork();
    if (child == 0) {
      does();
      ::_exit(99);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  [[nodiscard]] bool was_told() const {
    char byte = 0;
    return ::read(pipe_[0], &byte, 1) == 1;
  }
  std::array<int, 2> pipe_{};
};

TEST_F(AbortWatch, AProcessThatAbortsSaysSoStaysAndEndsByTheSameSignal) {
  const SteadyClock clock;
  const MonoTime began = clock.now();
  const int status = status_of([&] {
    watch_aborts(pipe_[1], milliseconds(300));
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_GE(clock.now() - began, milliseconds(300));
  EXPECT_TRUE(was_told());
}

TEST_F(AbortWatch, AChildOfItEndsAtOnceAndSaysNothing) {
  const int status = status_of([&] {
    watch_aborts(pipe_[1], std::chrono::hours(1));
    const int grandchild = status_of([] { std::abort(); });
    ::_exit(WIFSIGNALED(grandchild) ? WTERMSIG(grandchild) : 98);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == SIGABRT) << status;
  EXPECT_FALSE(was_told());
}

TEST_F(AbortWatch, WhoHandledTheSignalBeforeDoesSoAfterwards) {
  const int status = status_of([&] {
    std::signal(SIGABRT, [](int) { ::_exit(7); });
    watch_aborts(pipe_[1], milliseconds(1));
    std::abort();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_TRUE(was_told());
}

TEST_F(AbortWatch, ThatIsForgottenItEndsAtOnce) {
  const int status = status_of([&] {
    watch_aborts(pipe_[1], std::chrono::hours(1));
    forget_aborts();
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_FALSE(was_told());
}

}  // namespace
}  // namespace antdt::capi
