#include "core/os/forks/forked_copy.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "core/os/forks/huge_pages.h"

namespace antdt {
namespace {

constexpr int kCopyNiceness = 10;  // so that training comes first

pid_t fork_without_handlers() {
#if __GLIBC_PREREQ(2, 34)
  return ::_Fork();  // in a fork handler, OpenBLAS ends its threads
#else
  return ::fork();
#endif
}

void become_copy(pid_t parent, int reports) {
  if (reports != kReportsFd) ::dup2(reports, kReportsFd);
  ::syscall(SYS_close_range, kReportsFd + 1, ~0U, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) _exit(1);  // it ended before that was said
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  ::setpriority(PRIO_PROCESS, 0, kCopyNiceness);
}

}  // namespace

Result<pid_t> fork_copy(int reports, ForkHandlers handlers, const char* purpose) {
  HugePages::of_process().stop_mending();
  const pid_t parent = ::getpid();
  const pid_t child = handlers == ForkHandlers::kRun ? ::fork() : fork_without_handlers();
  if (child == 0) {
    become_copy(parent, reports);
    return 0;
  }
  if (child < 0) {
    const int error = errno;
    HugePages::of_process().mend();
    return fail_errno(ErrorKind::kIo, error, std::string("a child process to ") + purpose);
  }
  return child;
}

}  // namespace antdt
