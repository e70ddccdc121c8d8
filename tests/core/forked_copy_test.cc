// A copy of a process that writes what its memory held.
#include "core/os/forks/forked_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "core/os/pipe.h"

namespace antdt {
namespace {

// What the child says until it ends.
std::string all_of(int fd) {
  std::string said;
  std::array<char, 256> buffer{};
  for (ssize_t n = 0; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return said;
}

class ForkedCopyTest : public testing::TestWithParam<ForkHandlers> {};
INSTANTIATE_TEST_SUITE_P(Handlers, ForkedCopyTest,
                         testing::Values(ForkHandlers::kRun, ForkHandlers::kSkip));

TEST_P(ForkedCopyTest, HasTheMemoryOfThatMomentAndNoOtherDescriptor) {
  Pipe reports, other;
  ASSERT_TRUE(reports.open() && other.open());
  int value = 7;
  const auto child = fork_copy(reports.write.get(), GetParam(), "say something");
  ASSERT_TRUE(child);
  if (*child == 0) {
    const bool closed =
        fcntl(other.read.get(), F_GETFD) < 0 && fcntl(other.write.get(), F_GETFD) < 0;
    const bool nice = getpriority(PRIO_PROCESS, 0) > 0;
    const char said[] = {static_cast<char>('0' + value), closed ? 'c' : 'o', nice ? 'n' : 'p'};
    _exit(::write(kReportsFd, said, sizeof said) == sizeof said ? 0 : 1);
  }
  value = 8;
  reports.write.close();
  EXPECT_EQ(all_of(reports.read.get()), "7cn");
  int status = -1;
  ASSERT_EQ(waitpid(*child, &status, 0), *child);
  EXPECT_EQ(status, 0);
}

TEST_P(ForkedCopyTest, IsRefusedWithTheReasonWhereThereMayBeNoFurtherProcess) {
  Pipe reports;
  ASSERT_TRUE(reports.open());
  const pid_t refused = fork();
  if (refused == 0) {
    const rlimit none{0, 0};
    // Root is not bound by the limit.
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (getuid() == 0 && setuid(65534) != 0)) _exit(2);
    const auto child = fork_copy(reports.write.get(), GetParam(), "write a checkpoint");
    if (child && *child == 0) _exit(3);
    const bool says =
        !child && child.error().kind == ErrorKind::kIo &&
        child.error().message.find("a child process to write a checkpoint") != std::string::npos;
    _exit(says ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(refused, &status, 0), refused);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this user is not bound by limits";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace antdt
