#include "trainer/ps_link/child_copy.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/pipe.h"

namespace antdt::ps {
namespace {

constexpr int kNiceness = 10;  // training comes first

void write_out(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // who would have read it is gone
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Status ChildCopy::begin(const char* to, const std::function<void(const Tell&)>& run) {
  Pipe pipe;
  if (!pipe.open()) return fail_errno(ErrorKind::kIo, errno, "a pipe");
  const pid_t child = fork();
  if (child < 0) return fail_errno(ErrorKind::kIo, errno, std::string("a child to ") + to);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    setpriority(PRIO_PROCESS, 0, kNiceness);
    run([fd = pipe.write.get()](std::string_view bytes) { write_out(fd, bytes); });
    _exit(0);  // nothing of the server's is ended here
  }
  child_ = child;
  from_child_ = std::move(pipe.read);
  return {};
}

void ChildCopy::end() {
  if (child_ == 0) return;
  from_child_.close();
  kill(child_, SIGKILL);
  waitpid(std::exchange(child_, 0), nullptr, 0);
}

}  // namespace antdt::ps
