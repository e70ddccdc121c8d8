#include "trainer/ps_link/child_copy.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/log/log.h"
#include "core/os/forks/forked_copy.h"
#include "core/os/forks/huge_pages.h"
#include "core/os/pipe.h"
#include "core/os/process.h"

namespace antdt::ps {
namespace {

// How long the server waits for a child that was killed, whose memory is released meanwhile.
constexpr Duration kMoment = std::chrono::milliseconds(100);
// How many such times it waits, as long as the child only waits for a processor, of which it gets
// little while others compute.
constexpr int kMoments = 20;

void write_out(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the reader is gone
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Status ChildCopy::begin(const char* to, const std::function<void(const Tell&)>& run) {
  if (!killed_one_ends({})) {
    return fail(ErrorKind::kIo,
                "no child to {}: the one before (process {}) was killed and does not end, it waits "
                "for a disk that does not answer",
                to, killed_);
  }
  Pipe pipe;
  if (!pipe.open()) return fail_errno(ErrorKind::kIo, errno, "a pipe");
  ANTDT_TRY(const pid_t child, fork_copy(pipe.write.get(), ForkHandlers::kRun, to));
  if (child == 0) {
    run([](std::string_view bytes) { write_out(kReportsFd, bytes); });
    _exit(0);  // without running any destructors of the server
  }
  child_ = child;
  from_child_ = std::move(pipe.read);
  return {};
}

void ChildCopy::watch(Duration patience, EventLoop::Callback on_bytes,
                      EventLoop::Callback on_silence) {
  unwatch();
  watched_ = true;
  patience_ = patience;
  on_silence_ = std::move(on_silence);
  loop_.watch_fd(from_child_.get(), [this, on_bytes = std::move(on_bytes)] {
    be_patient();
    on_bytes();
  });
  be_patient();
}

// If this process itself was stopped, the loop first reads what has arrived meanwhile.
void ChildCopy::be_patient() {
  loop_.cancel(silence_);
  silence_ = loop_.call_after(patience_, [this] {
    const auto on_silence = std::exchange(on_silence_, nullptr);
    unwatch();
    on_silence();
  });
}

void ChildCopy::unwatch() {
  if (!std::exchange(watched_, false)) return;
  loop_.unwatch_fd(from_child_.get());
  loop_.cancel(silence_);
}

void ChildCopy::end() {
  unwatch();
  if (child_ == 0) return;
  from_child_.close();
  kill(child_, SIGKILL);
  killed_ = std::exchange(child_, 0);
  bool ended = killed_one_ends(kMoment);
  for (int i = 1; !ended && i < kMoments && !process_waits_for_device(killed_); ++i) {
    ended = killed_one_ends(kMoment);
  }
  if (!ended) log_warn("process {} was killed and has not ended yet", killed_);
}

bool ChildCopy::killed_one_ends(Duration within) {
  if (killed_ == 0) return true;
  if (const auto pidfd = open_pidfd(killed_)) {
    const OwnedFd ended(*pidfd);
    pollfd waiting{ended.get(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(within / std::chrono::milliseconds(1)));
  }
  if (waitpid(killed_, nullptr, WNOHANG) == 0) return false;
  killed_ = 0;
  HugePages::of_process().mend();
  return true;
}

}  // namespace antdt::ps
